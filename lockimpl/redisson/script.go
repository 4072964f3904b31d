package redisson

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"slices"
	"strings"
)

//go:embed scripts/*.lua scripts/parts/*.lua
var scriptFiles embed.FS

// ScriptKind is the purpose of a script.
type ScriptKind string

// The kinds, in the words of a scenario's `script:`.
const (
	KindAcquire     ScriptKind = "acquire"
	KindUnlock      ScriptKind = "unlock"
	KindRenew       ScriptKind = "renew"
	KindForceUnlock ScriptKind = "force_unlock"
	KindLeave       ScriptKind = "leave"
	// kindRead is a plain command that changes nothing worth guarding.
	kindRead ScriptKind = "read"
)

// Script is one Lua script as it is sent.
type Script struct {
	Kind ScriptKind
	Name string // of its file, without .lua
	Text string
	SHA  string // hex SHA-1 of Text, as EVALSHA wants it

	// keys and args are the names of the operands in KEYS and ARGV, in order, as the head of the file
	// gives them.
	keys, args []string
}

// part is a piece of Lua that several scripts share: it takes the place of the line --@place.
type part struct{ place, file string }

var (
	purgeStrict   = part{"purge", "parts/purge_strict"}     // F1 to F5
	purgeTolerant = part{"purge", "parts/purge_tolerant"}   // F6 on
	take          = part{"take", "parts/take"}              // F1 to F3
	takeChained   = part{"take", "parts/take_chained"}      // F4 on
	reenter       = part{"reenter", "parts/reenter"}        // reentrant locks
	refuseReentry = part{"reenter", "parts/refuse_reentry"} // non-reentrant locks
)

var allParts = []part{purgeStrict, purgeTolerant, take, takeChained, reenter, refuseReentry}

// script reads a script and inserts its parts.
func script(kind ScriptKind, name string, parts ...part) Script {
	text := scriptText(name)
	s := Script{Kind: kind, Name: name, keys: headOf(text, "KEYS"), args: headOf(text, "ARGV")}
	for _, p := range parts {
		text = strings.Replace(text, "--@"+p.place+"\n", scriptText(p.file), 1)
	}
	sum := sha1.Sum([]byte(text))
	s.Text, s.SHA = text, hex.EncodeToString(sum[:])
	return s
}

// headOf reads a line such as "-- KEYS: 1 lock hash, 2 channel" of a file's
// head.
func headOf(text, word string) (names []string) {
	_, list, found := strings.Cut(text, "-- "+word+": ")
	if !found {
		return nil
	}
	list, _, _ = strings.Cut(list, "\n")
	for entry := range strings.SplitSeq(list, ", ") {
		_, name, _ := strings.Cut(entry, " ")
		names = append(names, name)
	}
	return names
}

// takes reports whether the script has a key or an argument of that name.
func (s Script) takes(operand string) bool {
	return slices.Contains(s.keys, operand) || slices.Contains(s.args, operand)
}

func scriptText(name string) string {
	text, err := scriptFiles.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		panic("redisson: the table of releases names a script that is not embedded: " + name)
	}
	return string(text)
}
