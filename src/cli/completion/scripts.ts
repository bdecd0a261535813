/**
 * What a shell must be told once. Each script asks `retl` itself for candidates, so that it stays right when commands
 * change: `retl __complete -- <words>` prints one per line, `value<TAB>about`; `:folders` and `:files` leave it to the shell.
 */

/** The first word of a command line that asks for candidates. */
export const COMPLETE_WORD = '__complete';
/** The answer where the shell should complete folders. */
export const FOLDERS_LINE = ':folders';
/** The same for files, and the folders on the way to them. */
export const FILES_LINE = ':files';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/**
 * bash splits words at `:` and `=` too, and replaces the last piece only: the line is split at blanks here, and what bash
 * will not replace is cut off the answers.
 */
const BASH = `# retl: completion for bash. Load it with:  source <(retl completion bash)
_retl() {
  local line=\${COMP_LINE:0:COMP_POINT} value about current cut
  local -a words
  COMPREPLY=()
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  current=\${words[\${#words[@]}-1]}
  cut=
  [[ $current == *[:=]* ]] && cut=\${current%"\${current##*[:=]}"}
  while IFS=$'\\t' read -r value about; do
    if [[ $value == ${FOLDERS_LINE} ]]; then
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -d -- "\${current#"$cut"}")
      return
    fi
    if [[ $value == ${FILES_LINE} ]]; then
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "\${current#"$cut"}")
      return
    fi
    COMPREPLY+=("\${value#"$cut"}")
  done < <("\${words[0]}" ${COMPLETE_WORD} -- "\${words[@]:1}" 2>/dev/null)
}
complete -F _retl retl
`;

const ZSH = `#compdef retl
# retl: completion for zsh. Load it with:  source <(retl completion zsh)
# or write it into a folder of $fpath, as _retl.
_retl() {
  local line
  local -a lines candidates
  lines=("\${(@f)$("\${words[1]}" ${COMPLETE_WORD} -- "\${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
  if [[ $lines[1] == ${FOLDERS_LINE} ]]; then
    _files -/
    return
  fi
  if [[ $lines[1] == ${FILES_LINE} ]]; then
    _files
    return
  fi
  for line in $lines; do
    candidates+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  (( $#candidates )) && _describe -t retl retl candidates
}
if [[ $funcstack[1] == _retl ]]; then
  _retl "$@"
elif (( $+functions[compdef] )); then
  compdef _retl retl
fi
`;

const FISH = `# retl: completion for fish. Load it with:  retl completion fish | source
# or write it to ~/.config/fish/completions/retl.fish.
function __retl_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    set -l answer ($program ${COMPLETE_WORD} -- $words "$current" 2>/dev/null)
    if test "$answer[1]" = ${FOLDERS_LINE}
        __fish_complete_directories "$current"
    else if test "$answer[1]" = ${FILES_LINE}
        __fish_complete_path "$current"
    else
        printf '%s\\n' $answer
    end
end
complete -c retl -f -a '(__retl_complete)'
`;

export const SCRIPTS: { readonly [S in Shell]: string } = { bash: BASH, zsh: ZSH, fish: FISH };
