package redis

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"

	"lockstep/model"
)

//go:embed catalogue.txt
var catalogueText string

// A listing is what the catalogue says of a command, or of a subcommand such as CLIENT|ID.
type listing struct {
	name      string
	since     since
	arity     int // as COMMAND has it: the number of words, negative for the least number
	simulated bool
	options   []option
}

// option is a word of a command that turns something on.
type option struct {
	word      string
	since     since
	simulated bool
}

// since has the first release of Redis and of Valkey with a command or an option; nil: none has it.
type since struct{ redis, valkey []int }

// catalogue has all commands and subcommands by name.
var catalogue = readCatalogue(catalogueText)

// containers are the commands that have subcommands.
var containers = func() map[string]bool {
	found := map[string]bool{}
	for name := range catalogue {
		if command, _, ok := strings.Cut(name, "|"); ok {
			found[command] = true
		}
	}
	return found
}()

func readCatalogue(text string) map[string]*listing {
	all := map[string]*listing{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if words[0] == "#" {
			continue
		}
		l := &listing{since: since{releaseNumbers(words[1]), releaseNumbers(words[2])}}
		l.name, l.simulated = cutMark(words[0])
		l.arity, _ = strconv.Atoi(words[3])
		for _, word := range words[4:] {
			word, releases, later := strings.Cut(word, "=")
			o := option{since: l.since}
			o.word, o.simulated = cutMark(word)
			if r, v, ok := strings.Cut(releases, "/"); ok && later {
				if r != "+" {
					o.since.redis = releaseNumbers(r)
				}
				if v != "+" {
					o.since.valkey = releaseNumbers(v)
				}
			}
			l.options = append(l.options, o)
		}
		all[l.name] = l
	}
	return all
}

// cutMark returns a word of the catalogue without its mark, and reports whether it had none.
func cutMark(word string) (string, bool) {
	text, marked := strings.CutPrefix(word, "!")
	return text, !marked
}

// bundled are the beginnings of the names of commands that modules have which come with Redis 8 or with Valkey.
var bundled = []string{"BF.", "CF.", "CMS.", "FT.", "JSON.", "TDIGEST.", "TOPK.", "TS."}

// unknown answers a command that the release of the server does not have, or that is not simulated. It returns ""
// for any other command. said is the name of the command as the client wrote it.
func (s *Server) unknown(said, cmd string, args []string) (refusal string) {
	l := catalogue[cmd]
	module := slices.ContainsFunc(bundled, func(prefix string) bool { return strings.HasPrefix(cmd, prefix) })
	switch {
	case l == nil && module:
		return s.unsimulated(cmd)
	case l == nil || !s.cfg.Release.has(l.since):
		return s.cfg.Release.unknownCommand(said, args)
	case !l.simulated:
		return s.unsimulated(cmd)
	case !containers[cmd] || len(args) == 0:
		return ""
	}
	switch sub := catalogue[cmd+"|"+strings.ToUpper(args[0])]; {
	case sub == nil || !s.cfg.Release.has(sub.since):
		return "ERR unknown subcommand '" + args[0] + "'. Try " + cmd + " HELP."
	case !sub.simulated:
		return s.unsimulated(cmd + " " + strings.ToUpper(args[0]))
	case !takes(sub.arity, len(args)+1):
		return "ERR wrong number of arguments for '" + strings.ToLower(sub.name) + "' command"
	}
	return ""
}

// takes reports whether a command of an arity may have so many words.
func takes(arity, words int) bool { return words == arity || arity < 0 && words >= -arity }

// unsimulated records that the server met something that it does not simulate, and returns the answer.
func (s *Server) unsimulated(what string) string {
	if !s.met[what] {
		if s.met == nil {
			s.met = map[string]bool{}
		}
		s.met[what] = true
		s.out.Record(model.Event{Kind: model.KindUnsimulated, Command: what})
	}
	return "ERR lockstep: " + what + " is not simulated"
}

// missing returns the words of a command that are options which are not simulated, but which a release of the server
// has. Each may also be a value.
func (l *listing) missing(r Release, args []string) (words []string) {
	for _, o := range l.options {
		if !o.simulated && r.has(o.since) && slices.ContainsFunc(args, func(arg string) bool { return strings.EqualFold(arg, o.word) }) {
			words = append(words, o.word)
		}
	}
	return words
}

// releaseNumbers reads a release such as 8.4.0; "-" is nil.
func releaseNumbers(text string) (list []int) {
	for part := range strings.SplitSeq(text, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil
		}
		list = append(list, n)
	}
	return list
}

// has reports whether a release has an option of the command.
func (l *listing) has(r Release, word string) bool {
	return slices.ContainsFunc(l.options, func(o option) bool { return o.word == word && r.has(o.since) })
}
