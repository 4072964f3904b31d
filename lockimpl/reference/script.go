package reference

import (
	"embed"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed scripts/*.lua
var scriptFiles embed.FS

// script is one Lua script; its name is also its purpose.
type script struct {
	*redis.Script
	name, text string
}

// scripts are the scripts of one kind of lock.
type scripts struct{ acquire, unlock, forceUnlock, leave, renew script }

var (
	plainScripts = scriptsWith("request", "request", "wake", "wake", "take", "take")
	fairScripts  = scriptsWith("request", "request", "wake", "wake_head", "take", "take", "keep", "keep", "queue", "queue", "wait", "wait",
		"behind", "behind", "at_last", "at_last", "depart", "depart")
)

// scriptsWith reads the scripts and replaces each line --@PART by the file of that part, even
// inside another part. A part that a kind of lock lacks stays a comment.
func scriptsWith(partsAndFiles ...string) *scripts {
	var parts []string
	for i := 0; i < len(partsAndFiles); i += 2 {
		parts = append(parts, "--@"+partsAndFiles[i]+"\n", scriptText(partsAndFiles[i+1]))
	}
	put := strings.NewReplacer(parts...)
	read := func(name string) script {
		text := put.Replace(put.Replace(scriptText(name)))
		return script{redis.NewScript(text), name, text}
	}
	return &scripts{read("acquire"), read("unlock"), read("force_unlock"), read("leave"), read("renew")}
}

func scriptText(name string) string {
	text, err := scriptFiles.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		panic("reference: a script that is not embedded: " + name)
	}
	return string(text)
}

// Scripts returns the purpose of each script by its text.
func Scripts() map[string]string {
	of := map[string]string{}
	for _, s := range []*scripts{plainScripts, fairScripts} {
		for _, s := range []script{s.acquire, s.unlock, s.forceUnlock, s.leave, s.renew} {
			of[s.text] = s.name
		}
	}
	return of
}
