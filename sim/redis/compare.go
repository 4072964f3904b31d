package redis

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	mserver "github.com/alicebob/miniredis/v2/server"
	"github.com/zeebo/xxh3"
)

// miniredis does not know SET with a condition on the value, DELEX with a digest, DELIFEQ and DIGEST.

// condition is a comparison of a key's value: IFEQ, IFNE, IFDEQ or IFDNE.
type condition struct{ word, with string }

// holds reports whether a value meets the condition.
func (c condition) holds(value string, there bool) bool {
	switch c.word {
	case "IFEQ":
		return there && value == c.with
	case "IFNE":
		return !there || value != c.with
	case "IFDEQ":
		return there && digest(value) == strings.ToLower(c.with)
	}
	return !there || digest(value) != strings.ToLower(c.with)
}

// wrong returns the error for an operand that is no digest; "" if there is none.
func (c condition) wrong() string {
	if c.word != "IFDEQ" && c.word != "IFDNE" {
		return ""
	}
	if _, err := strconv.ParseUint(c.with, 16, 64); err != nil || len(c.with) != 16 {
		return "ERR must be exactly 16 hexadecimal characters"
	}
	return ""
}

// digest returns the digest of a value as DIGEST does.
func digest(value string) string { return fmt.Sprintf("%016x", xxh3.HashString(value)) }

// isCondition reports whether a word of SET begins a condition.
func isCondition(word string) bool {
	if len(word) < 4 || len(word) > 5 || word[0]|0x20 != 'i' {
		return false
	}
	switch strings.ToUpper(word) {
	case "IFEQ", "IFNE", "IFDEQ", "IFDNE":
		return true
	}
	return false
}

// setIf executes a SET with a condition. It reports whether the command is such a SET.
func (s *Server) setIf(peer *mserver.Peer, args []string) bool {
	var cond condition
	exclusive, ends, syntax, invalid := false, false, false, "" // NX or XX came before; an expiry came before
	rest := append([]string{"SET"}, args[:2]...)
	for i := 2; i < len(args); i++ {
		word := strings.ToUpper(args[i])
		last := i+1 == len(args)
		switch {
		case word == "EX" || word == "PX" || word == "EXAT" || word == "PXAT" || word == "KEEPTTL":
			syntax = syntax || ends || word != "KEEPTTL" && last
			ends = true
			if word != "KEEPTTL" && !last {
				i++
				invalid = invalidExpiry(args[i])
				rest = append(rest, word)
			}
		case word == "NX" || word == "XX":
			exclusive = true
			syntax = syntax || cond.word != "" && s.cfg.Release.valkey
		case isCondition(word):
			syntax = syntax || exclusive || last || cond.word != "" && (cond.word != word || s.cfg.Release.valkey)
			cond.word = word
			if i++; !last {
				cond.with = args[i]
			}
			continue
		}
		rest = append(rest, args[i])
	}
	if cond.word == "" {
		return false
	}
	value, there, failed := s.valueOf(peer, args[0])
	switch wrong := cmp.Or(invalid, failed, cond.wrong()); {
	case syntax || !catalogue["SET"].has(s.cfg.Release, cond.word):
		peer.WriteError("ERR syntax error")
	case wrong != "":
		peer.WriteError(wrong)
	case cond.holds(value, there):
		s.m.Server().Dispatch(peer, rest)
	case there:
		s.m.Server().Dispatch(peer, append(rest, "NX")) // has the answer, and sets nothing
	default:
		s.m.Server().Dispatch(peer, append(rest, "XX"))
	}
	return true
}

// invalidExpiry returns the error for an expiry that is no number above 0; "" if it is one.
func invalidExpiry(text string) string {
	switch n, err := strconv.ParseInt(text, 10, 64); {
	case err != nil:
		return "ERR value is not an integer or out of range"
	case n <= 0:
		return "ERR invalid expire time in 'set' command"
	}
	return ""
}

// valueOf returns the value of a string, or the error of GET.
func (s *Server) valueOf(peer *mserver.Peer, key string) (value string, there bool, failed string) {
	reply := s.quietly(peer, "GET", key)
	if text, ok := strings.CutPrefix(reply, "-"); ok {
		return "", false, strings.TrimSuffix(text, "\r\n")
	}
	value, _ = parseReply(reply)
	return value, !strings.HasPrefix(reply, "$-1"), ""
}

// deleteIf answers DELEX, DELIFEQ and DIGEST.
func (s *Server) deleteIf(peer *mserver.Peer, cmd string, args []string) {
	arity := catalogue[cmd].arity
	if !takes(arity, len(args)+1) || cmd == "DELEX" && len(args) != 1 && len(args) != 3 {
		peer.WriteError("ERR wrong number of arguments for '" + strings.ToLower(cmd) + "' command")
		return
	}
	cond := condition{"IFEQ", args[len(args)-1]}
	if len(args) == 3 {
		cond.word = strings.ToUpper(args[1])
	}
	value, there, failed := s.valueOf(peer, args[0])
	wrong := cond.wrong()
	if !isCondition(cond.word) {
		wrong = "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"
	}
	switch {
	case cmd == "DELEX" && len(args) == 1:
		s.m.Server().Dispatch(peer, []string{"DEL", args[0]})
	case failed != "" && cmd == "DELEX":
		peer.WriteError("ERR Key should be of string type if conditions are specified")
	case failed != "":
		peer.WriteError(failed)
	case cmd == "DIGEST" && there:
		peer.WriteBulk(digest(value))
	case cmd == "DIGEST":
		peer.WriteNull()
	case !there:
		peer.WriteInt(0)
	case wrong != "":
		peer.WriteError(wrong)
	case cond.holds(value, there):
		s.m.Server().Dispatch(peer, []string{"DEL", args[0]})
	default:
		peer.WriteInt(0)
	}
}
