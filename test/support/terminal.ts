/** `retl` on a real pseudo-terminal, by Python's own module, and the screen that a person would see. */

import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { cleanEnvironment, RETL } from '../cli/support.ts';

/** Passes bytes between its own pipes and the terminal that it runs the command on; ends as the command does. */
const RELAY = `
import fcntl, os, pty, select, struct, sys, termios
rows, columns = int(sys.argv[1]), int(sys.argv[2])
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
    os.execvp(sys.argv[3], sys.argv[3:])
sources = [terminal, 0]
while True:
    for ready in select.select(sources, [], [])[0]:
        try:
            data = os.read(ready, 65536)
        except OSError:
            data = b''
        if ready == 0:
            if data: os.write(terminal, data)
            else: sources.remove(0)
        elif data:
            os.write(1, data)
        else:
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`;

export interface TerminalOptions {
  readonly cwd: string;
  readonly env?: { readonly [name: string]: string };
  readonly rows?: number;
  readonly columns?: number;
}

export class Terminal {
  readonly ended: Promise<number | null>;
  #bytes = '';
  #isOver = false;
  readonly #child;

  constructor(args: readonly string[], { cwd, env = {}, rows = 24, columns = 100 }: TerminalOptions) {
    const command = [process.execPath, '--import', import.meta.resolve('tsx'), RETL, ...args];
    this.#child = spawn('python3', ['-c', RELAY, String(rows), String(columns), ...command], {
      cwd,
      env: { ...cleanEnvironment(), TERM: 'xterm', ...env },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      this.#bytes += chunk;
    });
    this.ended = new Promise((resolve, reject) => {
      this.#child.once('error', reject);
      this.#child.once('close', (code) => {
        this.#isOver = true;
        resolve(code);
      });
    });
  }

  type(keys: string): void {
    this.#child.stdin.write(keys);
  }

  ctrlC(): void {
    this.type('\x03');
  }

  /** All that was ever written, cursor movements included. */
  get bytes(): string {
    return this.#bytes;
  }

  /** What stands on the screen, and what has left it at the top; without colours and blanks at the ends. */
  get screen(): readonly string[] {
    return rendered(this.#bytes);
  }

  /** Waits until the text stands on the screen. */
  async shows(text: string): Promise<void> {
    const until = Date.now() + 40_000;
    while (!this.screen.join('\n').includes(text)) {
      if (Date.now() > until) throw new Error(`it does not show ${text}, but:\n${this.screen.join('\n')}`);
      if (this.#isOver) throw new Error(`it ended without ${text}:\n${this.screen.join('\n')}`);
      await sleep(50);
    }
  }
}

/** The few sequences that `retl` and readline write; an unknown one is an error, not a blank. */
function rendered(bytes: string): readonly string[] {
  const lines = [''];
  let [row, column] = [0, 0];
  const put = (text: string) => {
    const line = (lines[row] ?? '').padEnd(column);
    lines[row] = line.slice(0, column) + text + line.slice(column + text.length);
    column += text.length;
  };
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what a terminal is spoken to with
  for (const [part] of bytes.matchAll(/\x1b\[[\d;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+/g)) {
    if (part === '\r') column = 0;
    else if (part === '\n') {
      row += 1;
      lines[row] ??= '';
    } else if (!part.startsWith('\x1b')) put(part);
    else {
      const by = Number.parseInt(part.slice(2), 10) || 0;
      switch (part.at(-1)) {
        case 'A':
          row = Math.max(0, row - Math.max(1, by));
          break;
        case 'G':
          column = Math.max(0, by - 1);
          break;
        case 'J':
          lines[row] = (lines[row] ?? '').slice(0, column);
          lines.length = row + 1;
          break;
        case 'K':
          lines[row] = (lines[row] ?? '').slice(0, column);
          break;
        case 'm':
        case 'h':
        case 'l':
          break;
        default:
          throw new Error(`the screen does not know ${JSON.stringify(part)}`);
      }
    }
  }
  return lines.map((line) => line.trimEnd());
}
