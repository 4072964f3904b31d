package scenarios

import (
	"embed"
	"io/fs"
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

// Builtin loads the scenarios that come with the program, sorted by name. A program need not have the
// locks that they name: Builtin leaves out such a lock, and a scenario that names no other.
func Builtin() ([]*Scenario, error) {
	all, err := collection{builtinName, builtinFiles()}.load()
	return withLocks(all), err
}
