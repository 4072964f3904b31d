package redisson

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"math"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lockstep/internal/longtest"
	"lockstep/lockimpl/internal/luatest"
)

// distinctScripts returns every script of every release once.
func distinctScripts() (all []Script) {
	for _, rel := range Releases {
		for _, s := range rel.Scripts() {
			if !slices.ContainsFunc(all, func(o Script) bool { return o.SHA == s.SHA }) {
				all = append(all, s)
			}
		}
	}
	return all
}

func TestScriptsAreTheirFilesWithTheirParts(t *testing.T) {
	used := map[string]bool{}
	for _, s := range distinctScripts() {
		used[s.Name] = true
		sum := sha1.Sum([]byte(s.Text))
		same(t, s.Name+" hash", s.SHA, hex.EncodeToString(sum[:]))
		if strings.Contains(s.Text, "--@") {
			t.Errorf("%s still has the place of a part", s.Name)
		}
		for _, p := range allParts {
			same(t, s.Name+" has the part "+p.file, strings.Contains(s.Text, scriptText(p.file)),
				strings.Contains(scriptText(s.Name), "--@"+p.place+"\n") && strings.Contains(s.Text, scriptText(p.file)))
		}
	}
	files, err := scriptFiles.ReadDir("scripts")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if name := strings.TrimSuffix(f.Name(), ".lua"); !used[name] && !f.IsDir() {
			t.Errorf("no release uses %s", f.Name())
		}
	}
}

// The head of each file names every element of KEYS and ARGV that the script uses, and no other.
func TestHeadsOfScriptsNameKeysAndArguments(t *testing.T) {
	index := regexp.MustCompile(`(KEYS|ARGV)\[([^\]]+)\]`)
	comment := regexp.MustCompile(`(?m)^\s*--.*$`)
	check := func(name, text string) {
		named, usedIn := map[string][]string{}, map[string][]string{}
		for line := range strings.Lines(scriptText(name)) {
			line, isComment := strings.CutPrefix(strings.TrimSpace(line), "-- ")
			if !isComment {
				break
			}
			for _, of := range []string{"KEYS", "ARGV"} {
				list, ok := strings.CutPrefix(line, of+": ")
				if !ok {
					continue
				}
				for entry := range strings.SplitSeq(list, ", ") {
					first, what, _ := strings.Cut(entry, " ")
					if what == "" {
						t.Errorf("%s: the head says nothing of %s[%s]", name, of, first)
					}
					named[of] = append(named[of], strings.Replace(first, "1..", "i", 1))
				}
			}
		}
		for _, m := range index.FindAllStringSubmatch(comment.ReplaceAllString(text, ""), -1) {
			if of, i := m[1], strings.ReplaceAll(m[2], " ", ""); !slices.Contains(usedIn[of], i) {
				usedIn[of] = append(usedIn[of], i)
			}
		}
		for _, of := range []string{"KEYS", "ARGV"} {
			slices.Sort(named[of])
			slices.Sort(usedIn[of])
			same(t, name+": "+of+" in the head", named[of], usedIn[of])
		}
	}
	for _, s := range distinctScripts() {
		check(s.Name, s.Text)
		if !strings.Contains(scriptText(s.Name), "-- reply: ") {
			t.Errorf("%s: the head does not name the reply", s.Name)
		}
	}
	for _, p := range allParts {
		check(p.file, scriptText(p.file))
	}
}

// From every state, every script has the same effect on a real Redis as on miniredis: the same
// reply, messages and database. A short test takes every third state.
func TestScriptsDoOnRedisWhatTheyDoOnMiniredis(t *testing.T) {
	for _, server := range []string{"redis-server", "valkey-server"} {
		t.Run(server, func(t *testing.T) {
			if _, err := exec.LookPath(server); err != nil && server != "redis-server" {
				t.Skip("no " + server + " here; install valkey-server where Debian has it (trixie and later)")
			}
			compareScripts(t, newStage(t, luatest.StartServer(t, server)))
		})
	}
}

func compareScripts(t *testing.T, real *stage) {
	mini := miniStage(t)
	states, compared := 0, 0
	every := 3 / longtest.Size(t, 1, 3)
	for _, script := range distinctScripts() {
		for _, c := range casesOf(t, script) {
			if states++; states%every != 0 {
				continue
			}
			compared++
			got, want := mini.play(t, script.Text, c).text(coarse), real.play(t, script.Text, c).text(coarse)
			if got != want {
				t.Errorf("%s, %s:\nminiredis: %s\nreal:      %s", variant(script), c.what, got, want)
			}
		}
	}
	if compared < 2000/every {
		t.Errorf("only %d cases", compared)
	}
	t.Logf("%d cases", compared)
}

// coarse prints a number. It rounds a large one, which may contain a time to live, to the next ten
// thousand, so that a slow machine prints the same.
func coarse(v any) string {
	if n, ok := v.(int64); ok && (n > 10_000 || n < -10_000) {
		return strconv.FormatFloat(math.Round(float64(n)/10_000)*10, 'f', 0, 64) + " k"
	}
	return fmt.Sprint(v)
}
