/**
 * Runs a guide as a reader would: its files are written, its SQL goes to the playground, its commands are run one by one,
 * and each line of output that it shows must come, in that order.
 *
 *   console  `$ command`, then lines of its output; `…` stands for any text, and whatever is not shown may come between
 *   yaml, js a first line `# path` or `// path` names the file that the block is the whole content of
 *   sql      run on the playground of `retl dev`
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { Client } from 'pg';
import { cleanEnvironment, RETL } from '../cli/support.ts';

export type Step =
  | { readonly kind: 'command'; readonly line: string; readonly shown: readonly string[] }
  | { readonly kind: 'file'; readonly path: string; readonly content: string }
  | { readonly kind: 'sql'; readonly text: string };

/** What a guide has its reader do, in order. Blocks of other languages, and parts of files, are only read. */
export function stepsOf(text: string): readonly Step[] {
  return [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```/gm)].flatMap(([, language = '', body = '']): Step[] => {
    if (language === 'console') return commandsOf(body);
    if (language === 'sql') return [{ kind: 'sql', text: body }];
    const path = /^(?:#|\/\/) (\S+\.\w+)\n/.exec(body)?.[1];
    return path === undefined ? [] : [{ kind: 'file', path, content: body }];
  });
}

function commandsOf(body: string): Step[] {
  return body
    .split(/^\$ /m)
    .slice(1)
    .map((part) => {
      const [line = '', ...shown] = part.trimEnd().split('\n');
      return { kind: 'command', line, shown: shown.filter((one) => one.trim() !== '') };
    });
}

/** The first shown line that does not come in its turn; `null`: all of them do. */
export function missing(shown: readonly string[], output: string): string | null {
  const lines = output.split('\n');
  for (const line of shown) {
    const pattern = patternOf(line);
    const at = lines.findIndex((one) => pattern.test(one.trimEnd()));
    if (at < 0) return line;
    lines.splice(0, at + 1);
  }
  return null;
}

function patternOf(line: string): RegExp {
  const parts = line.trimEnd().split('…');
  return new RegExp(`^${parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('.*')}$`);
}

/** One terminal, with what it has started in the background. */
export class Reader {
  #folder: string;
  #code = 0;
  readonly #background: ChildProcess[] = [];

  /** `home`: an empty folder, the reader's own. */
  constructor(private readonly home: string) {
    this.#folder = home;
  }

  /** @throws Error that says which command did not do what the guide shows. */
  async follow(step: Step): Promise<void> {
    switch (step.kind) {
      case 'file': {
        const file = join(this.#folder, step.path);
        await mkdir(dirname(file), { recursive: true });
        return writeFile(file, step.content);
      }
      case 'sql':
        return this.#sql(step.text);
      case 'command':
        return this.#command(step.line, step.shown);
    }
  }

  async leave(): Promise<void> {
    for (const child of this.#background.reverse()) {
      const ended = new Promise((resolve) => child.once('close', resolve));
      if (child.exitCode !== null || child.pid === undefined) continue;
      process.kill(-child.pid, 'SIGTERM');
      await ended;
    }
  }

  async #command(line: string, shown: readonly string[]): Promise<void> {
    const folder = /^cd (\S+)$/.exec(line)?.[1];
    if (folder !== undefined) {
      const path = folder.replace(/^~/, this.home);
      this.#folder = isAbsolute(path) ? path : join(this.#folder, path);
      return;
    }
    const output = line === 'echo $?' ? String(this.#code) : await this.#run(line);
    // Who has no psql does without: the statements of the guides are run in any case.
    const isThere = !(line.startsWith('psql ') && this.#code === 127);
    if (shown.length === 0 && this.#code !== 0 && isThere)
      throw new Error(`$ ${line}\nended with ${this.#code}:\n${output}`);
    const absent = missing(shown, output);
    if (absent !== null) throw new Error(`$ ${line}\nshould show: ${absent}\nbut said:\n${output}`);
  }

  #run(line: string): Promise<string> {
    const stays = line === 'retl dev' ? 'The worker is ready.' : line.endsWith(' &') ? '\n' : null;
    const child = spawn(
      'bash',
      ['-c', `retl() { "$RETL_NODE" --import "$RETL_TSX" "$RETL_MAIN" "$@"; }\n${line.replace(/ &$/, '')}`],
      {
        cwd: this.#folder,
        detached: true,
        env: {
          ...cleanEnvironment(),
          HOME: this.home,
          RETL_NODE: process.execPath,
          RETL_TSX: import.meta.resolve('tsx'),
          RETL_MAIN: RETL,
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    if (stays !== null) this.#background.push(child);
    return new Promise((resolve, reject) => {
      let output = '';
      const hear = (chunk: string): void => {
        output += chunk;
        if (stays !== null && output.includes(stays)) resolve(output);
      };
      child.stdout.setEncoding('utf8').on('data', hear);
      child.stderr.setEncoding('utf8').on('data', hear);
      child.once('error', reject);
      child.once('close', (code) => {
        this.#code = code ?? -1;
        if (stays === null) resolve(output);
        else reject(new Error(`$ ${line}\nended: ${output}`));
      });
    });
  }

  async #sql(text: string): Promise<void> {
    const environment = await readFile(join(this.#folder, '.retl/dev.env'), 'utf8');
    const url = /^PLAYGROUND_URL=(.*)$/m.exec(environment)?.[1];
    const client = new Client({ connectionString: url });
    await client.connect();
    try {
      await client.query(text);
    } finally {
      await client.end();
    }
  }
}
