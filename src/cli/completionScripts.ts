/** What `drover completion SHELL` prints; each asks `drover completion words` for choices. */

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

const BASH = `_drover() {
  local word help current=\${COMP_WORDS[COMP_CWORD]}
  COMPREPLY=()
  while IFS=$'\\t' read -r word help; do
    case $word in
      :files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
      :folders) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
      *) COMPREPLY+=("$word") ;;
    esac
  done < <("\${COMP_WORDS[0]}" completion words -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _drover drover ./drover
`;

const ZSH = `#compdef drover
_drover() {
  local line
  local -a typed choices
  typed=("\${(@)words[2,CURRENT]}")
  for line in "\${(@f)$(\${words[1]} completion words -- "$typed[@]" 2>/dev/null)}"; do
    case $line in
      '') ;;
      :files) _files; return ;;
      :folders) _files -/; return ;;
      *$'\\t'*) choices+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}") ;;
      *) choices+=("\${line//:/\\\\:}") ;;
    esac
  done
  (( $#choices )) && _describe drover choices
}
if [[ $funcstack[1] == _drover ]]; then _drover "$@"; else compdef _drover drover; fi
`;

const FISH = `function __drover_choices
    set -l words (commandline -opc) (commandline -ct)
    set -l current (commandline -ct)
    for line in ($words[1] completion words -- $words[2..-1] 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path $current
            case :folders
                __fish_complete_directories $current
            case '*'
                echo $line
        end
    end
end
complete -c drover -f -a '(__drover_choices)'
`;

export const COMPLETION_SCRIPTS: Record<(typeof SHELLS)[number], string> = {
  bash: BASH,
  zsh: ZSH,
  fish: FISH,
};
