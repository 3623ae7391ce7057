package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"posttrade/app/settings"
)

// examples has a command line for every command, which its help shows; also for the words of a
// command that have a help of their own. A test runs through them, so a command without one is
// found.
var examples = map[string]string{
	"serve":    "posttrade serve --journal.durability=os",
	"health":   "posttrade health --live",
	"stop":     "posttrade stop --data.dir=./data",
	"config":   "posttrade config --json",
	"token":    "posttrade token --subject=desk-1 --accounts=1,2 --ttl=1h",
	"replay":   "posttrade replay --synthetic=100000 --url=http://127.0.0.1:18110 --set-prices",
	"journal":  "posttrade journal export --from 1 --to 1000",
	"snapshot": "posttrade snapshot",
	"recon":    "posttrade recon breaks --class=FIELD_MISMATCH",
	"export":   "posttrade export trades --format=parquet --as-of=2026-11-20 -o trades.parquet",
	"tca":      "posttrade tca trd-1",
	"risk-extract": "posttrade risk-extract rebuild data/extracts/2026-11-23/v1/seq-738.cut " +
		"positions.csv contracts.csv",
	"RiskExtractMain": "posttrade RiskExtractMain --rebuild " +
		"data/extracts/2026-11-23/v1/seq-738.cut positions.csv contracts.csv",
	"source": "posttrade source status",
	"top":    "posttrade top",
	"watch":  "posttrade watch book:AAPL,trades",
	"cluster": "posttrade cluster status --cluster.member-id=1 --cluster.members=" +
		"1=127.0.0.1:7001@127.0.0.1:8001,2=127.0.0.1:7002@127.0.0.1:8002," +
		"3=127.0.0.1:7003@127.0.0.1:8003",
	"perf":          "posttrade perf --only=decision",
	"perf gate":     "posttrade perf gate --base=../before/bin/posttrade",
	"perf report":   "posttrade perf report perf/results",
	"perf sample":   "posttrade perf sample --row=decision",
	"perf verdicts": "posttrade perf verdicts --last=3 perf/results",
	"completion":    "posttrade completion bash > /etc/bash_completion.d/posttrade",
	"version":       "posttrade version",
	"backup":        "posttrade backup /backups/monday",
	"restore":       "posttrade restore /backups/monday --data.dir=./restored",
	"evidence": "posttrade evidence verify p.json " +
		"--key='posttrade/1f2e3d4c5b6a7988+0a1b2c3d+AbCd'",
	"inspect": "posttrade inspect --at 1000 book AAPL",
	"why":     "posttrade why ord-17",
	"what-if": "posttrade what-if --set risk.price.collar-bps=100",
}

// runHelp is `posttrade help`: the overview, or what a command's -h prints and an example. It runs
// the command with -h, so each command's help is in one place.
func runHelp(commands []command, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		printOverview(stdout, commands)
		return settings.ExitOK
	}
	at, err := find(commands, args[0])
	if err != nil {
		return settings.Exit(stderr, err)
	}
	return commands[at].helped([]string{"-h"}, stdout, stderr)
}

// helped runs a command. Behind its own help stands an example. Arguments that ask for help make
// run print it and do nothing else.
func (c *command) helped(args []string, stdout, stderr io.Writer) int {
	asks := slices.ContainsFunc(args, isHelp)
	code := c.run(args, stdout, stderr)
	if asks && code == settings.ExitOK {
		example := examples[c.name]
		if own := examples[c.name+" "+args[0]]; own != "" {
			example = own
		}
		fmt.Fprintf(stdout, "\nexample:\n  %s\n", example)
	}
	return code
}

// find returns the place of the command with a name. The error of an unknown name suggests the
// nearest one.
func find(commands []command, name string) (at int, err error) {
	at = slices.IndexFunc(commands, func(c command) bool { return c.name == name })
	if at >= 0 {
		return at, nil
	}
	names := []string{"help"}
	for _, c := range commands {
		names = append(names, c.name)
	}
	return at, settings.Usagef("unknown command %s%s; posttrade -h lists them",
		settings.Printable(name), settings.DidYouMean(name, names))
}

const completionUsage = "completion bash|zsh|fish"

// runCompletion is `posttrade completion`: a script that completes commands and settings. The
// script is made of the list of commands and settings of this build, so it is made anew after an
// update.
func runCompletion(args []string, stdout, stderr io.Writer) int {
	f := newFlags(completionUsage,
		"Prints a script that makes a shell complete commands, their words and settings.\n"+
			"  bash  posttrade completion bash > /etc/bash_completion.d/posttrade\n"+
			"  zsh   posttrade completion zsh > \"${fpath[1]}/_posttrade\"\n"+
			"  fish  posttrade completion fish > ~/.config/fish/completions/posttrade.fish")
	if _, err := f.read(args, 1, stdout); err != nil {
		return settings.Exit(stderr, err)
	}
	shells := map[string]func() string{"bash": bashCompletion, "zsh": zshCompletion,
		"fish": fishCompletion}
	if len(f.rest) != 1 || shells[f.rest[0]] == nil {
		return settings.Exit(stderr, settings.Usagef("usage: posttrade %s", completionUsage))
	}
	_, err := io.WriteString(stdout, shells[f.rest[0]]())
	return settings.Exit(stderr, err)
}

// wordsOf are what may follow a command, for completion; none where no fixed words may. They come
// from what the command reads, or from the forms that its help shows.
func wordsOf(command string) []string {
	switch command {
	case "help":
		return commandNames()
	case "journal":
		return journalCommands
	case "perf":
		return slices.Sorted(maps.Keys(perfCommands()))
	case "source":
		return []string{"status", "bump-epoch"}
	case "cluster":
		return []string{"status", "add", "remove", "alone"}
	case "risk-extract":
		return []string{"rebuild"}
	}
	for _, usage := range []string{evidenceUsage, reconUsage, exportUsage, completionUsage} {
		if form := strings.Fields(usage); form[0] == command {
			return strings.Split(form[1], "|")
		}
	}
	return nil
}

// commandNames are the names of all commands, and help, which dispatch knows without a command.
func commandNames() (names []string) {
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return append(names, "help")
}

// settingFlags are all settings as flags, with the = that a value follows.
func settingFlags() (flags []string) {
	for _, name := range settings.Names() {
		flags = append(flags, "--"+name+"=")
	}
	return flags
}

// wordCases are the branches of a shell's case over the commands that take words.
//
// form gets the name of a command and its words.
func wordCases(form string) string {
	var b strings.Builder
	for _, name := range commandNames() {
		if list := wordsOf(name); len(list) > 0 {
			fmt.Fprintf(&b, form, name, strings.Join(list, " "))
		}
	}
	return b.String()
}

// bashCompletion completes the word at the cursor: a setting behind a -, else a command, else a
// word of the command, else a file. The word is cut at blanks, because bash would cut it at = and
// :, too.
func bashCompletion() string {
	return `# bash completion of posttrade
_posttrade() {
	local cur=${COMP_WORDS[COMP_CWORD]} words= line=${COMP_LINE:0:COMP_POINT}
	cur=${line##*[[:space:]]}
	if [[ $cur == -* ]]; then
		words="` + strings.Join(settingFlags(), " ") + `"
		compopt -o nospace 2>/dev/null
	elif [[ $COMP_CWORD == 1 ]]; then
		words="` + strings.Join(commandNames(), " ") + `"
	else
		case ${COMP_WORDS[1]} in
` + wordCases("\t\t%s) words=\"%s\" ;;\n") + `		esac
	fi
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
	[[ $words ]] || COMPREPLY=($(compgen -f -- "$cur"))
}
complete -F _posttrade posttrade
`
}

func zshCompletion() string {
	return `#compdef posttrade
_posttrade() {
	local -a list
	if [[ ${words[CURRENT]} == -* ]]; then
		list=(` + strings.Join(settingFlags(), " ") + `)
		compadd -S '' -- $list
	elif (( CURRENT == 2 )); then
		list=(` + strings.Join(commandNames(), " ") + `)
		compadd -- $list
	else
		case ${words[2]} in
` + wordCases("\t\t%s) list=(%s); compadd -- $list ;;\n") + `		*) _files ;;
		esac
	fi
}
compdef _posttrade posttrade
`
}

// fishCompletion has a line for each command, word and setting: fish shows their meanings beside
// them.
func fishCompletion() string {
	var b strings.Builder
	b.WriteString("# fish completion of posttrade\n")
	for _, c := range commands() {
		fmt.Fprintf(&b, "complete -c posttrade -n __fish_use_subcommand -f -a %s -d %s\n", c.name,
			fishQuoted(c.summary))
	}
	b.WriteString(wordCases("complete -c posttrade -n '__fish_seen_subcommand_from %s' -f -a '%s'\n"))
	for i := range settings.List {
		s := &settings.List[i]
		fmt.Fprintf(&b, "complete -c posttrade -n 'not __fish_use_subcommand' -l %s -r -d %s\n", s.Name,
			fishQuoted(s.Help))
	}
	return b.String()
}

// fishQuoted is a text in fish's single quotes.
func fishQuoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}
