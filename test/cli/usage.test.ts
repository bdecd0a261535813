import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Command } from 'commander';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EXIT_MEANINGS } from '../../src/cli/exit-codes.ts';
import { buildProgram } from '../../src/cli/program.ts';
import { createTestProject, type TestProject } from '../support/project.ts';
import { retl } from './support.ts';

let empty: TestProject;
beforeAll(async () => {
  empty = await createTestProject();
});
afterAll(() => empty.remove());

const COMMANDS = buildProgram(false).commands;
const NAMES = [
  'init',
  'dev',
  'migrate',
  'worker',
  'check',
  'baseline',
  'plan',
  'run',
  'status',
  'runs',
  'explain',
  'find',
  'rejections',
  'log',
  'index',
  'schedules',
  'maintenance',
  'cancel',
  'abort',
  'pause',
  'resume',
  'poll',
  'approve',
  'reject',
  'resolve',
  'release',
  'completion',
];

/** Every command and group, by its words: `schedules apply`. */
const LINES = COMMANDS.flatMap((command) => [
  command.name(),
  ...command.commands.map((below) => `${command.name()} ${below.name()}`),
]);

function helpOf(line: string): string {
  let command: Command | undefined = buildProgram(false);
  for (const name of line.split(' ')) command = command?.commands.find((one) => one.name() === name);
  let text = '';
  command?.configureOutput({
    writeOut: (part) => {
      text += part;
    },
  });
  command?.outputHelp();
  return text;
}

test('retl --help names every command and every exit code', async () => {
  const { code, stdout } = await retl(['--help'], { cwd: empty.folder });
  expect(code).toBe(0);
  for (const name of NAMES) expect(stdout).toMatch(new RegExp(`^  ${name} `, 'm'));
  for (const meaning of Object.values(EXIT_MEANINGS)) expect(stdout).toContain(meaning);
});

test('there are the commands there should be, and each takes --json, --project, --env and --no-color', () => {
  expect(COMMANDS.map((command) => command.name())).toEqual(NAMES);
  for (const command of COMMANDS)
    expect(command.options.map((option) => option.long)).toEqual(
      expect.arrayContaining(['--json', '--project', '--env', '--no-color', '--debug']),
    );
});

test.each(LINES)('the help of %s teaches by examples that are parsed as they stand', (name) => {
  const lines = [...helpOf(name).matchAll(/^ {2}\$ retl (.*?)\s+# .+$/gm)].map((match) => match[1] ?? '');
  expect(lines.length).toBeGreaterThan(0);
  for (const line of lines) {
    const program = buildProgram(true);
    silence(program);
    expect(() => program.parse(wordsOf(line), { from: 'user' })).not.toThrow();
  }
});

/** As a shell would split the line. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/"([^"]*)"|'([^']*)'|\S+/g)].map((match) => match[1] ?? match[2] ?? match[0]);
}

/** Commands are parsed and do nothing; a group keeps looking for the command below it. */
function silence(command: Command): void {
  if (command.commands.length === 0) command.action(() => undefined);
  for (const below of command.commands) silence(below);
}

test.each([
  [[], /Usage: retl/],
  [['schedules'], /Usage: retl schedules/],
  [['schedules', 'aply'], /unknown command 'aply'\n\(Did you mean apply\?\)/],
  [['schedules', 'pause'], /missing required argument 'mirror'/],
  [['schedules', 'pause', 'VIP*'], /lower-case letters, digits and `-`/],
  [['stats'], /unknown command 'stats'\n\(Did you mean status\?\)/],
  [['runs', '--limt', '3'], /unknown option '--limt'\n\(Did you mean --limit\?\)/],
  [['runs', '--limit', 'many'], /whole number from 1 to 1000/],
  [['run'], /missing required argument 'mirror'/],
  [['log', 'compact'], /required option '--before <position\|age>'/],
  [['log', 'compact', '--before', 'soon'], /a position from 1, or an age/],
  [['log', 'compact', '--before', '5', '--receipts', '1h'], /of a day at least/],
  [['explain', 'a', 'b', 'c'], /too many arguments/],
  [['baseline', 'import', 'a', 'all.csv'], /too many arguments: say the file with --from/],
  [['runs', '--state', 'blockd'], /Did you mean blocked\?/],
  [['runs', '--state', 'parked,blockd'], /Did you mean blocked\? It must be some of/],
  [['maintenance', 'run', '--only', 'receits'], /Did you mean receipts\?/],
  [['run', 'a', '--approve-up-to', 'all'], /whole number/],
  [['run', '--tag', 'VIP'], /A tag has 1 to 63/],
  [['cancel', 'VIP_customers'], /lower-case letters, digits and `-`/],
])('wrong usage %j exits with 2 and says how it is used', async (args, words) => {
  const { code, stdout, stderr } = await retl(args, { cwd: empty.folder });
  expect(code).toBe(2);
  expect(stdout).toBe('');
  expect(stderr).toMatch(words);
  expect(stderr).toMatch(/--help/);
});

test('with --json, wrong usage is one JSON document on stdout and nothing else', async () => {
  const { code, stdout, stderr } = await retl(['stats', '--json'], { cwd: empty.folder });
  expect(code).toBe(2);
  expect(JSON.parse(stdout)).toMatchObject({
    error: { code: 'usage', meaning: expect.stringContaining('stats') },
  });
  expect(stderr).toBe('');
});

test('bin/retl.js runs it, built or not, from any folder', async () => {
  const bin = fileURLToPath(new URL('../../bin/retl.js', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [bin, '--version'], { cwd: empty.folder });
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});
