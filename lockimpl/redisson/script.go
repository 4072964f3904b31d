package redisson

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"strings"
)

//go:embed scripts/*.lua
var scriptFiles embed.FS

// ScriptKind is what a script is for.
type ScriptKind string

// The kinds, in the words of a scenario's `script:`.
const (
	KindAcquire     ScriptKind = "acquire"
	KindUnlock      ScriptKind = "unlock"
	KindRenew       ScriptKind = "renew"
	KindForceUnlock ScriptKind = "force_unlock"
	KindLeave       ScriptKind = "leave"
	// kindRead is a plain command that changes nothing worth guarding; the
	// executor sends it again.
	kindRead ScriptKind = ""
)

// Script is one Lua script as it is sent.
type Script struct {
	Kind ScriptKind
	Name string // of its file, without .lua
	Text string
	SHA  string // hex SHA-1 of Text, as EVALSHA wants it
}

func script(kind ScriptKind, name string) Script {
	return finished(kind, name, scriptText(name))
}

// fair is a script of the fair lock, in which the lines --@purge and --@enter
// stand for the parts that several scripts share.
func fair(kind ScriptKind, name string) Script {
	text := scriptText(name)
	text = strings.Replace(text, "--@purge\n", scriptText("fair_purge_tolerant"), 1)
	text = strings.Replace(text, "--@enter\n", scriptText("fair_enter_chained"), 1)
	return finished(kind, name, text)
}

func scriptText(name string) string {
	text, err := scriptFiles.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		panic("redisson: the table of releases names a script that is not embedded: " + name)
	}
	return string(text)
}

func finished(kind ScriptKind, name, text string) Script {
	sum := sha1.Sum([]byte(text))
	return Script{Kind: kind, Name: name, Text: text, SHA: hex.EncodeToString(sum[:])}
}
