package scenarios

import (
	"embed"
	"io/fs"
	"sync"

	"lockstep/scenarios/subject"
)

//go:embed builtin
var embedded embed.FS

// builtinName is the name of the collection of the scenarios that come with the program.
const builtinName = "builtin"

func builtinFiles() fs.FS {
	files, err := fs.Sub(embedded, builtinName)
	if err != nil {
		panic("scenarios: " + err.Error())
	}
	return files
}

// parsed keeps the built-in scenarios as they were parsed for the first subjects: the files do not
// change, and so only a further subject can give a scenario more locks.
var parsed struct {
	sync.Mutex
	subjects int
	all      []*Scenario
}

// builtin returns copies of the built-in scenarios, sorted by name. Those of which the program has no
// lock are among them.
func builtin() ([]*Scenario, error) {
	parsed.Lock()
	defer parsed.Unlock()
	if n := subject.Registered(); parsed.all == nil || parsed.subjects != n {
		all, err := collection{builtinName, builtinFiles()}.load()
		if err != nil {
			return nil, err
		}
		parsed.all, parsed.subjects = all, n
	}
	copies := make([]*Scenario, len(parsed.all))
	for i, sc := range parsed.all {
		copies[i] = sc.Clone()
	}
	return copies, nil
}

// Builtin loads the scenarios that come with the program, sorted by name. A program need not have the
// locks that they name: Builtin leaves out such a lock, and a scenario that names no other.
func Builtin() ([]*Scenario, error) {
	all, err := builtin()
	return withLocks(all), err
}
