package scenarios

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"lockstep/scenarios/subject"
)

func file(name string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("lockstep: 1\nname: " + name + "\nlocks: [setnx-del]\nprocesses: {a: {}}\nsteps: {a/1: [{lock: x}, {unlock: x}]}\n")}
}

// Several collections may have a scenario of the same name, and a folder of the same name.
func TestCollections(t *testing.T) {
	Register("shop", fstest.MapFS{
		"testdata/stories/shared.yaml": file("shared"), "testdata/stories/alone.yaml": file("alone"), "loose.yaml": file("loose"),
		"testdata/stories/notes.txt": {Data: []byte("no scenario")},
	})
	Register("depot", fstest.MapFS{"stories/shared.yaml": file("shared"), "misdelete.yaml": file("misdelete")})
	before, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, sc := range all[len(before):] {
		names = append(names, sc.File+" tagged "+sc.Tag())
	}
	if want := []string{
		"shop/testdata/stories/alone.yaml tagged stories", "shop/loose.yaml tagged ", "shop/testdata/stories/shared.yaml tagged stories",
		"depot/misdelete.yaml tagged ", "depot/stories/shared.yaml tagged stories",
	}; !slices.Equal(names, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(names, "\n"), strings.Join(want, "\n"))
	}
	tagged, err := Tagged("stories")
	if err != nil || len(tagged) != 3 {
		t.Errorf("%d scenarios are tagged stories, want 3: %v", len(tagged), err)
	}
	for _, c := range []struct{ name, file, wrong string }{
		{name: "alone", file: "shop/testdata/stories/alone.yaml"},
		{name: "depot/shared", file: "depot/stories/shared.yaml"},
		{name: "misdelete", file: "builtin/misdelete.yaml"},
		{name: "builtin/misdelete", file: "builtin/misdelete.yaml"},
		{name: "depot/misdelete", file: "depot/misdelete.yaml"},
		{name: "shared", wrong: "several scenarios have the name shared; take one of shop/shared, depot/shared"},
		{name: "depot/alone", wrong: "there is no file depot/alone; name a scenario, or the file of one"},
	} {
		sc, err := Find(c.name)
		switch {
		case c.wrong == "" && (err != nil || sc.File != c.file):
			t.Errorf("%s: %v, want %s", c.name, err, c.file)
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%s: %v, want %s", c.name, err, c.wrong)
		}
	}
}

func TestACollectionHasANameOfItsOwn(t *testing.T) {
	for _, name := range []string{"builtin", "", "a/b"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q is registered", name)
				}
			}()
			Register(name, fstest.MapFS{})
		}()
	}
}

// A program may lack the locks of built-in scenarios. This program has all of them, and so no scenario may
// name another one.
func TestBuiltinScenariosNameLocksThatExist(t *testing.T) {
	files, err := fs.Glob(builtinFiles(), "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	inFolders, err := fs.Glob(builtinFiles(), "*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, inFolders...)
	for _, file := range files {
		text, err := fs.ReadFile(builtinFiles(), file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(file, text, subject.Find); err != nil {
			t.Error(err)
		}
	}
	if all, err := Builtin(); err != nil || len(all) != len(files) || len(all) == 0 {
		t.Errorf("%d built-in scenarios of %d files: %v", len(all), len(files), err)
	}
}

// Only locks are left out: a partial scenario may have no other error.
func TestLocksThatTheProgramLacksAreLeftOut(t *testing.T) {
	one := func(name string) (*subject.Subject, error) {
		if name != "setnx-del" {
			return nil, errors.New("unknown")
		}
		return AnyLock(name)
	}
	const text = `lockstep: 1
name: partial
locks: [LOCKS]
processes: {a: {}}
steps: {a/1: [{lock: x}, {unlock: x}]}
expect: {other: held, setnx-del: {bug: [misdelete]}}
`
	for _, c := range []struct{ locks, want, wrong string }{
		{locks: "other, setnx-del", want: "[setnx-del] map[setnx-del:bug misdelete]"},
		{locks: "[setnx-del]", wrong: "partial.yaml:3:9: "},
		{locks: "other", wrong: "partial.yaml:6:23: "}, // an expectation of a lock that is not listed
	} {
		sc, err := parse("partial.yaml", []byte(strings.Replace(text, "LOCKS", c.locks, 1)), one, true)
		switch {
		case c.wrong == "" && (err != nil || fmt.Sprint(sc.Locks, sc.Expect) != c.want):
			t.Errorf("%s: %v, %+v, want %s", c.locks, err, sc, c.want)
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%s: %v, want %s", c.locks, err, c.wrong)
		}
	}
}

// Whoever gets a built-in scenario may change it, and a subject that is registered later may be
// a lock of built-in scenarios.
func TestBuiltinScenariosAreParsedOncePerSetOfSubjects(t *testing.T) {
	first, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	kept, name := parsed.all[0], first[0].Name
	first[0].Name, first[0].Locks[0] = "changed", "changed"
	again, err := Builtin()
	if err != nil || again[0].Name != name || again[0].Locks[0] == "changed" {
		t.Errorf("a change of a scenario reached the next reader: %s of %v, %v", again[0].Name, again[0].Locks, err)
	}
	if parsed.all[0] != kept {
		t.Error("they were parsed again, with the same subjects")
	}
	known, err := subject.Find("setnx-del")
	if err != nil {
		t.Fatal(err)
	}
	further := *known
	further.Name, further.Unlisted = "setnx-del-for-a-test", true
	subject.Register(&further)
	if _, err := Builtin(); err != nil || parsed.all[0] == kept {
		t.Errorf("they were not parsed again, with another subject: %v", err)
	}
}
