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

// Builtin loads the scenarios that come with the program, sorted by name.
func Builtin() ([]*Scenario, error) { return collection{builtinName, builtinFiles()}.load() }
