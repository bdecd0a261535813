import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { complete, type Names } from '../../src/cli/completion/candidates.ts';
import { SCRIPTS, SHELLS } from '../../src/cli/completion/scripts.ts';
import { buildProgram } from '../../src/cli/program.ts';
import { MIRROR, PROJECT } from '../config/support.ts';
import { createTestProject, type TestProject } from '../support/project.ts';
import { retl } from './support.ts';

const BATCH = `sha256:${'ab'.repeat(32)}`;
const named = (...values: readonly string[]) => values.map((value) => ({ value, about: '' }));
const NAMES: Names = {
  mirrors: async () => named('churn', 'vip-north', 'vip-south'),
  environments: async () => named('staging', 'production'),
  tags: async () => named('nightly', 'vip'),
  batches: async (mirror) => (mirror === 'churn' ? named(BATCH) : []),
};

/** What may stand at the end of the line. */
async function at(line: string): Promise<readonly string[] | 'folders' | 'files'> {
  const found = await complete(buildProgram(true), line.split(' '), NAMES);
  return found.kind === 'candidates' ? found.candidates.map(({ value }) => value) : found.kind;
}

test('commands are completed, those of a group too, and each with what it does', async () => {
  expect(await at('sta')).toEqual(['status']);
  expect(await at('schedules p')).toEqual(['pause']);
  const found = await complete(buildProgram(true), ['statu'], NAMES);
  expect(found).toMatchObject({ candidates: [{ value: 'status', about: expect.stringContaining('holds') }] });
});

test.each([
  ['run vip', ['vip-north', 'vip-south']],
  ['run --detach vip-n', ['vip-north']],
  ['--project here run vip-north vip', ['vip-south']],
  ['run "vip', ['vip-north', 'vip-south']],
  ['explain c', ['churn']],
  ['explain churn ', []],
  ['resolve churn sha256:', [BATCH]],
  ['resolve vip-north ', []],
  ['run --tag ni', ['nightly']],
  ['run --env st', ['staging']],
  ['status --env=', ['--env=staging', '--env=production']],
  ['run --tag=ni', ['--tag=nightly']],
  ['run --approve-up-to 3 chu', ['churn']],
  ['run --approve-up-to ', []],
  ['run --det', ['--detach']],
  ['run --detach --det', []],
  ['run --tag vip --ta', ['--tag']],
  ['run -- --det', []],
  ['completion z', ['zsh']],
  ['init ', 'folders'],
  ['status --project ', 'folders'],
  ['run --plan ', 'files'],
  ['plan vip-north --out=x', 'files'],
  ['plan vip-north vip', ['vip-south']],
  ['runs --state pa', ['parked']],
  ['runs --state parked --state bl', ['blocked']],
  ['runs --state parked --sta', ['--state']],
  ['nonsense ', []],
])('after `%s` stands what the command takes there', async (line, expected) => {
  expect(await at(line)).toEqual(expected);
});

test('every option of a command is offered, the shared ones too', async () => {
  expect(await at('runs --')).toEqual(
    expect.arrayContaining(['--limit', '--tag', '--json', '--project', '--help']),
  );
});

/** Where `retl` stands as a command, so that shells can call it as people's shells do. */
let project: TestProject;
beforeAll(async () => {
  project = await createTestProject({
    'retl.yaml': PROJECT,
    'mirrors/vip-north.yaml': `${MIRROR}tags: nightly\n`,
    'mirrors/vip-south.yaml': MIRROR,
    'odd:folder/kept': '',
  });
  const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
  const command = join(project.folder, 'retl');
  const line = [process.execPath, '--import', import.meta.resolve('tsx'), main].join("' '");
  await writeFile(command, `#!/bin/sh\nexec '${line}' "$@"\n`);
  await chmod(command, 0o755);
  for (const shell of SHELLS) await writeFile(join(project.folder, `script.${shell}`), SCRIPTS[shell]);
});
afterAll(() => project.remove());

const has = (shell: string) =>
  (process.env.PATH ?? '').split(':').some((folder) => existsSync(join(folder, shell)));

async function ask(shell: string, ...args: readonly string[]): Promise<readonly string[]> {
  const { stdout } = await promisify(execFile)(shell, args, {
    cwd: project.folder,
    env: { ...process.env, PATH: `${project.folder}:${process.env.PATH}` },
  });
  return stdout.split('\n').filter((text) => text !== '');
}

test.each(SHELLS)('retl completion %s prints the script', async (shell) => {
  const { code, stdout } = await retl(['completion', shell], { cwd: project.folder });
  expect(code).toBe(0);
  expect(stdout).toBe(SCRIPTS[shell]);
});

describe.runIf(has('bash'))('a real bash', () => {
  /** `words` as bash itself splits the line: at `:` and `=` too. */
  const bash = (line: string, ...words: readonly string[]) =>
    ask(
      'bash',
      '--norc',
      '-c',
      `source script.bash; COMP_LINE=$1; COMP_POINT=\${#1}; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _retl; printf "%s\\n" "\${COMPREPLY[@]}"`,
      'bash',
      line,
      ...words,
    );

  test('completes a mirror’s name after options', async () => {
    expect(await bash('retl run --detach vip-', 'retl', 'run', '--detach', 'vip-')).toEqual([
      'vip-north',
      'vip-south',
    ]);
  });

  test('gives after `=` the part that bash will put in', async () => {
    expect(await bash('retl run --tag=n', 'retl', 'run', '--tag', '=', 'n')).toEqual(['nightly']);
  });

  test('completes folders itself, and knows for whom it does', async () => {
    expect(await bash('retl init mir', 'retl', 'init', 'mir')).toEqual(['mirrors']);
    const files = await bash('retl run --plan ret', 'retl', 'run', '--plan', 'ret');
    expect([...files].sort()).toEqual(['retl', 'retl.yaml']);
    expect(await ask('bash', '--norc', '-c', 'source script.bash; complete -p retl')).toEqual([
      'complete -F _retl retl',
    ]);
  });
});

describe.runIf(has('zsh'))('a real zsh (skipped where it is not installed)', () => {
  test('gives each candidate with what it is about', async () => {
    const script = `source ./script.zsh; _describe() { print -rl -- "\${(@P)argv[-1]}"; }; words=(retl sta); CURRENT=2; PREFIX=sta; _retl`;
    expect(await ask('zsh', '-f', '-c', script)).toEqual([expect.stringMatching(/^status:show what/)]);
  });
});

describe.runIf(has('fish'))('a real fish (skipped where it is not installed)', () => {
  test('completes a mirror’s name and a command', async () => {
    const offers = (line: string) =>
      ask('fish', '--no-config', '-c', `source script.fish; complete --do-complete '${line}'`);
    expect(await offers('retl run vip-n')).toEqual(['vip-north']);
    expect(await offers('retl statu')).toEqual([expect.stringMatching(/^status\tshow what/)]);
    expect(await offers('retl run ')).toEqual(['vip-north', 'vip-south']);
  });
});
