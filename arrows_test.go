// Package lockstep holds no code: the folders do. This test keeps the rooms of the
// house, and the arrows between them. docs/design.md says what each room is for.
package lockstep

import (
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// room is a folder with those below it that are no rooms of their own.
type room struct {
	// imports are the rooms that it may import, beside the standard library.
	imports []string
	// modules are the only modules of others that it may import; nil allows any.
	modules []string
	// words may not occur in its code: in no name, no comment and no text.
	words []*regexp.Regexp
}

var (
	none = []string{}
	// locks are the names of locks, their releases and constants.
	locks = regexp.MustCompile(`(?i)redisson|setnx|string.reentrant|reference.fair|"reference"|watchdogtimeout|7500 \* time\.|@\d+\.\d`)
	// servers are the words of a server's protocol and of its clients.
	servers = regexp.MustCompile(`(?i:redis)|EVAL|SCRIPT|SUBSCRIBE|PUBLISH|HELLO|RESP|WAIT`)
	// wire are the words by which a reader of the record would know a server's protocol.
	wire = regexp.MustCompile(`EVAL|SUBSCRIBE|NOSCRIPT`)
	// redis is the name of a server, of which the judges of any lock say nothing.
	redis = regexp.MustCompile(`(?i)redis`)
	// roles are the roles of commands written out, which model.Role names.
	roles = regexp.MustCompile(`"(acquire|renew|leave)"`)
	// spoken are the ways in which a judge would write a sentence about what it found. Package
	// sentence writes it.
	spoken = regexp.MustCompile(`"fmt"|"strconv"|model\.(At|Seconds)\(`)
	// reasons are the names of such sentences.
	reasons = regexp.MustCompile(`\b(?i:why)\b *(string|:|=|\()`)
	// apart are the ways of taking a sentence apart.
	apart = regexp.MustCompile(`"regexp"|strings\.(Contains\(|Cut|Fields|HasPrefix|HasSuffix|Index|Split|Trim)`)
)

// rooms are all rooms.
var rooms = map[string]room{
	"model":           {modules: none, words: []*regexp.Regexp{locks, wire}},
	"model/trace":     {imports: []string{"model"}, modules: none, words: []*regexp.Regexp{locks, roles, wire, apart}},
	"sim":             {imports: []string{"internal", "model"}, modules: none, words: []*regexp.Regexp{locks, servers, roles}},
	"sim/redis":       {imports: []string{"model", "sim"}},
	"sim/goredis":     {imports: []string{"sim"}},
	"lockimpl":        {},
	"lockimpl/handle": {imports: []string{"lockimpl"}, modules: none, words: []*regexp.Regexp{apart}},
	"lockimpl/otellock": {imports: []string{"lockimpl"},
		modules: []string{"go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/metric"}, words: []*regexp.Regexp{apart}},
	"live": {imports: []string{
		"linearizability/judges", "live/proxy", "live/topology", "lockimpl", "model", "model/trace", "report/sentence",
		"scenarios", "scenarios/play", "scenarios/subject", "scenarios/subject/onredis", "sim", "sim/redis"}, words: []*regexp.Regexp{locks}},
	"live/java":       {imports: []string{"interop/library", "live", "lockimpl", "model", "scenarios/subject", "scenarios/subject/builtin", "scenarios/subject/onredis", "sim"}},
	"live/planted":    {imports: []string{"scenarios", "scenarios/subject"}, modules: none, words: []*regexp.Regexp{locks, apart}},
	"live/upstream":   {imports: []string{"linearizability/judges", "model", "model/trace", "report/sentence", "scenarios", "scenarios/play", "scenarios/subject"}, modules: none},
	"interop":         {imports: []string{"interop/library", "live/proxy", "lockimpl"}},
	"interop/library": {modules: none},
	"live/proxy":      {modules: none, words: []*regexp.Regexp{locks}},
	"live/topology":   {imports: []string{"lockimpl"}, words: []*regexp.Regexp{locks}},

	"linearizability":        {imports: []string{"model", "internal/foreign"}, modules: []string{"github.com/anishathalye/porcupine", "olympos.io/encoding/edn"}, words: []*regexp.Regexp{locks, wire, redis, reasons}},
	"linearizability/judges": {imports: []string{"linearizability", "model", "model/trace"}, modules: none, words: []*regexp.Regexp{locks, roles, wire, redis, spoken, reasons}},

	"scenarios":                 {imports: []string{"internal", "model", "scenarios/subject"}},
	"scenarios/scenariotest":    {imports: []string{"scenarios", "scenarios/subject"}, modules: none, words: []*regexp.Regexp{locks, apart}},
	"scenarios/subject":         {imports: []string{"internal", "lockimpl", "model", "sim"}, modules: none, words: []*regexp.Regexp{locks}},
	"scenarios/subject/onredis": {imports: []string{"model", "scenarios/subject", "sim", "sim/goredis", "sim/redis"}, words: []*regexp.Regexp{locks, apart}},
	"scenarios/subject/builtin": {imports: []string{
		"lockimpl", "lockimpl/handle", "model", "scenarios/subject", "scenarios/subject/onredis", "sim", "sim/redis"}, words: []*regexp.Regexp{apart}},
	"scenarios/play": {imports: []string{
		"linearizability/judges", "lockimpl", "model", "model/trace", "scenarios", "scenarios/subject", "sim", "internal/foreign"}, modules: none, words: []*regexp.Regexp{locks, apart}},

	"known":          {imports: []string{"known/bare", "known/defect", "known/redisson", "linearizability/judges", "model", "scenarios/play", "scenarios/subject", "sim"}, words: []*regexp.Regexp{apart}},
	"known/defect":   {imports: []string{"linearizability/judges", "model", "model/trace", "scenarios/play", "scenarios/subject"}, words: []*regexp.Regexp{locks, apart}},
	"known/bare":     {imports: []string{"known/defect", "model", "model/trace", "scenarios/subject"}, words: []*regexp.Regexp{apart}},
	"known/redisson": {imports: []string{"known/defect", "linearizability/judges", "model", "model/trace", "scenarios/subject"}},

	"explore": {imports: []string{
		"explore/coverage", "explore/draw", "explore/failure", "explore/shrink", "explore/strategy",
		"internal/counted", "known", "linearizability/judges", "model/trace", "report/sentence", "scenarios", "scenarios/play", "scenarios/subject", "sim", "internal/foreign"}, words: []*regexp.Regexp{locks, roles}},
	"explore/coverage": {imports: []string{"internal/counted", "model", "model/trace"}, modules: none, words: []*regexp.Regexp{locks, roles, apart}},
	"explore/draw":     {imports: []string{"explore/coverage", "internal", "model", "scenarios", "scenarios/subject", "sim"}, modules: none, words: []*regexp.Regexp{locks, roles, wire, redis, apart}},
	"explore/failure": {imports: []string{
		"known", "linearizability/judges", "model", "report/sentence", "scenarios", "scenarios/play", "sim"}, modules: none, words: []*regexp.Regexp{locks, roles, apart}},
	"explore/shrink": {imports: []string{
		"explore/failure", "known", "linearizability/judges", "model", "report/sentence", "scenarios", "scenarios/play", "sim"},
		modules: []string{"go.yaml.in/yaml/v3"}, words: []*regexp.Regexp{locks, roles}},
	"explore/strategy": {imports: []string{
		"model", "model/trace", "scenarios", "scenarios/play", "scenarios/subject", "sim"}, modules: none, words: []*regexp.Regexp{locks, roles}},

	"explore/spread": {imports: []string{"explore", "scenarios/subject"}, modules: none, words: []*regexp.Regexp{locks, roles, apart}},
	"explore/survey": {imports: []string{
		"explore", "explore/draw", "internal/counted", "linearizability/judges", "model", "model/trace", "scenarios", "scenarios/play", "scenarios/subject", "sim", "internal/foreign"},
		modules: none, words: []*regexp.Regexp{locks}},

	"explain": {imports: []string{
		"explore/coverage", "explore/draw", "explore/failure", "internal/counted", "known", "linearizability/judges", "model", "model/trace", "report", "report/sentence", "scenarios", "scenarios/play", "scenarios/subject", "sim"},
		modules: none, words: []*regexp.Regexp{locks, roles}},

	"report":          {imports: []string{"internal/counted", "linearizability/judges", "model", "model/trace", "report/sentence", "internal/foreign"}, words: []*regexp.Regexp{locks, roles, wire}},
	"report/sentence": {imports: []string{"internal/counted", "linearizability", "linearizability/judges", "model", "scenarios/play", "internal/foreign"}, modules: none, words: []*regexp.Regexp{locks, roles, wire, redis, apart}},
	"report/site": {imports: []string{"report", "internal/foreign"}, modules: []string{
		"github.com/yuin/goldmark", "github.com/yuin/goldmark/ast", "github.com/yuin/goldmark/extension", "github.com/yuin/goldmark/parser",
		"github.com/yuin/goldmark/renderer", "github.com/yuin/goldmark/text", "github.com/yuin/goldmark/util"}, words: []*regexp.Regexp{locks, roles, wire}},
	"internal":         {},
	"internal/counted": {modules: none, words: []*regexp.Regexp{apart}},
	"internal/foreign": {modules: none},
	"locktest": {imports: []string{
		"explain", "explore", "explore/draw", "explore/failure", "internal", "internal/counted", "known", "linearizability/judges", "lockimpl", "model", "model/trace", "report",
		"report/sentence", "scenarios", "scenarios/play", "scenarios/subject", "sim", "internal/foreign"}, words: []*regexp.Regexp{locks, roles}},
	"locktest/redistest": {imports: []string{"locktest", "scenarios/subject/builtin", "sim", "sim/goredis", "sim/redis"}, words: []*regexp.Regexp{locks, apart}},
	"locktest/drawntest": {imports: []string{"explore", "explore/draw", "internal", "linearizability/judges", "locktest", "model", "scenarios", "scenarios/play", "scenarios/subject", "sim"}, modules: none, words: []*regexp.Regexp{locks, roles, apart}},
	"locktest/strangers": {imports: []string{
		"explore", "explore/draw", "internal/counted", "linearizability/judges", "locktest", "locktest/redistest", "report/sentence", "scenarios", "scenarios/play", "scenarios/subject", "sim"}},
	"peers": {imports: []string{
		"bench", "explore/spread", "internal/evidence", "internal/foreign", "known", "known/defect", "live", "live/upstream", "lockmain", "locktest", "locktest/redistest", "model", "model/trace", "scenarios", "scenarios/subject", "sim"}},
	"bench": {imports: []string{
		"explore", "explore/draw", "explore/strategy", "internal", "interop/library", "known", "lockimpl", "model", "report/sentence", "scenarios", "scenarios/play", "scenarios/subject", "scenarios/subject/builtin", "sim", "internal/foreign"}},
	"lockvet": {},
	"overlay": {modules: none, words: []*regexp.Regexp{locks, servers, roles}},
	"cli": {imports: []string{
		"cli/frame", "explain", "explore", "explore/coverage", "explore/draw", "explore/failure", "explore/shrink", "explore/spread", "explore/strategy", "explore/survey",
		"internal", "internal/counted", "known", "linearizability", "linearizability/judges", "model", "overlay", "report", "report/sentence", "scenarios", "scenarios/play", "scenarios/subject", "sim", "internal/foreign"}},
	"cli/frame": {imports: []string{"explore", "explore/spread", "internal", "report", "scenarios", "scenarios/play", "scenarios/subject", "sim", "internal/foreign"}, words: []*regexp.Regexp{locks, roles}},
	"lockmain":  {imports: []string{"cli", "cli/frame", "explore/spread", "locktest", "scenarios", "scenarios/play", "sim"}, modules: none, words: []*regexp.Regexp{locks, roles, apart}},
	"internal/evidence": {imports: []string{
		"bench", "cli", "cli/frame", "explore", "explore/draw", "explore/spread", "explore/survey", "internal", "internal/counted", "known", "linearizability/judges",
		"live/planted", "live/upstream", "lockmain", "report", "report/site", "scenarios", "scenarios/play", "scenarios/subject", "sim", "internal/foreign"}},
	"cmd":           {imports: []string{"cli/frame", "internal/evidence", "live", "live/java", "lockmain", "scenarios/subject/builtin"}, words: []*regexp.Regexp{apart}},
	"cmd/lockvet":   {imports: []string{"internal/foreign", "lockvet"}, words: []*regexp.Regexp{locks, apart}},
	"cmd/strangers": {imports: []string{"locktest/strangers", "sim"}, words: []*regexp.Regexp{locks, apart}},
}

// roomsOf are the rooms that may import a module of the command line. Who imports a lock does
// not link it.
var roomsOf = map[string][]string{
	"github.com/spf13/cobra": {"cli", "cli/frame", "internal/evidence"},
	"github.com/spf13/pflag": {"cli", "cli/frame"},
}

// roomOf returns the innermost room that a folder belongs to, "" for none.
func roomOf(folder string) string {
	for name := folder; name != "."; name = filepath.ToSlash(filepath.Dir(name)) {
		if _, ok := rooms[name]; ok {
			return name
		}
	}
	return ""
}

// walkSource calls visit for each Go file of the module that is no test. It enters no hidden
// folder: git may remove files below .git meanwhile.
func walkSource(visit func(path string) error) error {
	return filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		return visit(path)
	})
}

func TestTheHouseIsAsTheDesignHasIt(t *testing.T) {
	module := reflect.TypeFor[room]().PkgPath() // this package is the root of the module
	used := map[string]map[string]bool{}        // the imports that there are, by room
	err := walkSource(func(path string) error {
		here := roomOf(filepath.ToSlash(filepath.Dir(path)))
		if here == "" {
			t.Errorf("%s: its folder is in no room of the design", path)
			return nil
		}
		if used[here] == nil {
			used[here] = map[string]bool{}
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, imp := range file.Imports {
			name, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				return err
			}
			inside, ours := strings.CutPrefix(name, module+"/")
			first, _, _ := strings.Cut(name, "/")
			switch there := roomOf(inside); {
			case ours && there == here:
			case ours && slices.Contains(rooms[here].imports, there):
				used[here][there] = true
			case ours:
				t.Errorf("%s imports %s: an arrow that the design does not know", path, name)
			case strings.Contains(first, ".") && rooms[here].modules != nil && !slices.Contains(rooms[here].modules, name):
				t.Errorf("%s imports %s: %s knows no module of others", path, name, here)
			case roomsOf[name] != nil && !slices.Contains(roomsOf[name], here):
				t.Errorf("%s imports %s: only %v may", path, name, roomsOf[name])
			}
		}
		for number, line := range strings.Split(string(text), "\n") {
			for _, words := range rooms[here].words {
				if word := words.FindString(line); word != "" {
					t.Errorf("%s:%d says %s, which is nothing that %s knows", path, number+1, word, here)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range rooms {
		if used[name] == nil {
			t.Errorf("%s is in the design and has no code", name)
		}
		for _, there := range r.imports {
			if !used[name][there] {
				t.Errorf("%s imports nothing of %s: take the arrow out of the design", name, there)
			}
		}
	}
}

// shut are ways that lose or inject something, with the rooms that must not contain them and the way that is open:
// to write text that came from outside as it is, to write a file that a fault leaves half written, and to give a
// number other limits than the table has.
var shut = []struct {
	way     *regexp.Regexp
	in      []string // rooms; nil: all
	instead string
}{
	{regexp.MustCompile(`fmt\.(Print|Fprint\w*\(os\.Std)`), []string{
		"cli", "cli/frame", "explore", "explore/survey", "internal/evidence", "linearizability", "live", "lockmain", "locktest", "report", "report/site", "scenarios", "scenarios/play"}, "foreign.NewTerminal"},
	{regexp.MustCompile(`\bt\.(Log|Error|Fatal|Skip)f?\(`), []string{"locktest"}, "say(t)"},
	{regexp.MustCompile(`\.Execute\(\w|Visualize\(.*, w\)`), nil, "foreign.Page or foreign.HTML"},
	{regexp.MustCompile(`xml\.(NewEncoder|Marshal)`), nil, "foreign.XML"},
	{regexp.MustCompile(`ReplaceAll\([^)]*"\|"`), nil, "foreign.Cell"},
	{regexp.MustCompile(`os\.(WriteFile|Create)\(|O_TRUNC`), []string{
		"cli", "cli/frame", "cmd", "cmd/strangers", "explore", "explore/survey", "explore/spread", "internal/evidence", "linearizability", "lockmain", "locktest", "locktest/strangers", "report", "report/site", "scenarios", "scenarios/play"}, "renameio.WriteFile"},
	{regexp.MustCompile(`quantity\.Bounds\{`), nil, "a limit of package quantity"},
	{regexp.MustCompile(`"# %`), []string{"cli", "scenarios/play"}, "foreign.Commented"},
}

func TestNothingIsLostOrInjected(t *testing.T) {
	seen := make([]int, len(shut)) // files that a rule reads
	err := walkSource(func(path string) error {
		here := roomOf(filepath.ToSlash(filepath.Dir(path)))
		if here == "internal/foreign" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, r := range shut {
			if r.in != nil && !slices.Contains(r.in, here) {
				continue
			}
			seen[i]++
			for number, line := range strings.Split(string(text), "\n") {
				if way := r.way.FindString(line); way != "" {
					t.Errorf("%s:%d: %s; use %s", path, number+1, way, r.instead)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range seen {
		if n == 0 {
			t.Errorf("no file is read for %v", shut[i].way)
		}
	}
}

// locksBuild has the modules that a program builds that imports one of the locks for production.
func locksBuild() map[string][]string {
	redis := []string{"github.com/cespare/xxhash/v2", "github.com/redis/go-redis/v9", "go.uber.org/atomic", "golang.org/x/sys"}
	return map[string][]string{
		"lockimpl/reference": redis,
		"lockimpl/redisson":  redis,
		"lockimpl/otellock":  {"github.com/cespare/xxhash/v2", "go.opentelemetry.io/otel", "go.opentelemetry.io/otel/metric"},
	}
}

// go get of a lock writes the modules that the lock builds into go.mod and go.sum of an empty
// module, and no others.
func TestWhatGoGetOfALockWrites(t *testing.T) {
	module := reflect.TypeFor[room]().PkgPath()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range locksBuild() {
		dir := t.TempDir()
		text := fmt.Sprintf("module shop\n\ngo 1.26.0\n\nreplace %s => %s\n", module, strconv.Quote(here))
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		goIn := func(args ...string) string {
			cmd := exec.Command("go", args...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GOPROXY=off", "GOSUMDB=off", "GOFLAGS=-mod=mod", "GOWORK=off") // all is in the cache already
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%s: go %s: %v\n%s", name, strings.Join(args, " "), err, out)
			}
			return string(out)
		}
		goIn("get", module+"/"+name)
		var asked struct{ Require []struct{ Path string } }
		if err := json.Unmarshal([]byte(goIn("mod", "edit", "-json")), &asked); err != nil {
			t.Fatal(err)
		}
		var required []string
		for _, r := range asked.Require {
			if r.Path != module {
				required = append(required, r.Path)
			}
		}
		sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
		if err != nil {
			t.Fatal(err)
		}
		var summed []string
		for line := range strings.Lines(string(sums)) {
			summed = append(summed, strings.Fields(line)[0])
		}
		slices.Sort(want)
		for file, got := range map[string][]string{"go.mod": required, "go.sum": summed} {
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, want) {
				t.Errorf("go get of %s writes %v into %s, want %v", name, got, file, want)
			}
		}
	}
}

// A program that imports one of these packages builds the modules in its row, and no others.
func TestWhatAProgramBuilds(t *testing.T) {
	module := reflect.TypeFor[room]().PkgPath()
	rows := locksBuild()
	for name, want := range map[string][]string{
		"locktest": {
			"github.com/anishathalye/porcupine", "github.com/google/renameio/v2", "go.yaml.in/yaml/v3", "olympos.io/encoding/edn"},
		"lockmain": {
			"github.com/anishathalye/porcupine", "github.com/google/renameio/v2", "github.com/spf13/cobra", "github.com/spf13/pflag", "go.yaml.in/yaml/v3", "golang.org/x/sync", "olympos.io/encoding/edn"},
	} {
		rows[name] = want
	}
	for name, want := range rows {
		out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./"+name).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		got := slices.DeleteFunc(strings.Fields(string(out)), func(m string) bool { return m == module })
		slices.Sort(got)
		slices.Sort(want)
		if got = slices.Compact(got); !slices.Equal(got, want) {
			t.Errorf("%s builds %v, want %v", name, got, want)
		}
	}
}
