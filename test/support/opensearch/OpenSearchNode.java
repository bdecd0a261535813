import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.opensearch.common.settings.Settings;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/** One node of OpenSearch on the loopback address, without plugins: `OpenSearchNode <folder> <port>`. */
final class OpenSearchNode extends Node {
  private OpenSearchNode(Settings settings) {
    super(
        InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "tests"),
        List.of(Netty4Plugin.class),
        false);
  }

  public static void main(String[] arguments) throws Exception {
    Settings settings =
        Settings.builder()
            .put("path.home", arguments[0])
            .put("cluster.name", "retl-tests")
            .put("node.name", "tests")
            .put("discovery.type", "single-node")
            .put("network.host", "127.0.0.1")
            .put("http.port", arguments[1])
            .put("transport.port", "0")
            .put("http.type", "netty4")
            .put("transport.type", "netty4")
            // A machine for tests may be fuller than a server's watermark.
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .put("node.store.allow_mmap", false)
            .build();
    OpenSearchNode node = new OpenSearchNode(settings);
    CountDownLatch ended = new CountDownLatch(1);
    Runtime.getRuntime().addShutdownHook(new Thread(() -> close(node, ended)));
    node.start();
    ended.await();
  }

  private static void close(Node node, CountDownLatch ended) {
    try {
      node.close();
    } catch (Exception e) {
      e.printStackTrace();
    }
    ended.countDown();
  }
}
