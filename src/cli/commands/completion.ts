/** `retl completion <shell>`: prints what a shell must load to complete command lines of `retl`. */

import { Argument, type Command } from 'commander';
import { type Invocation, newCommand } from '../command.ts';
import { SCRIPTS, SHELLS } from '../completion/scripts.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';

export function completionCommand(): Command {
  return newCommand(
    {
      name: 'completion',
      summary: 'print the completion script of a shell',
      description:
        'Prints a script that makes the shell complete commands, options, and the names of mirrors, tags and batches. It ' +
        'asks retl each time, and so stays right after an update. Put the line for your shell into its start file.',
      examples: [
        ['retl completion bash', 'in ~/.bashrc: source <(retl completion bash)'],
        ['retl completion zsh', 'in ~/.zshrc, after compinit: source <(retl completion zsh)'],
        ['retl completion fish', 'in config.fish: retl completion fish | source'],
      ],
    },
    print,
  ).addArgument(new Argument('<shell>', 'which shell').choices(SHELLS));
}

async function print({ output, args }: Invocation): Promise<ExitCode> {
  const shell = SHELLS.find((one) => one === args[0]) ?? 'bash';
  const script = SCRIPTS[shell];
  output.document({ shell, script });
  output.line(script.trimEnd());
  return EXIT.ok;
}
