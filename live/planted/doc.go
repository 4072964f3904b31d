// Package planted has stories about the bugs that were planted in locks. A real server shows the
// bug in them: steps whose order matters are so far apart that it is certain.
package planted

import (
	"embed"
	"io/fs"

	"lockstep/scenarios"
	"lockstep/scenarios/subject"
)

//go:embed stories/*.yaml
var files embed.FS

// Stories returns the stories in the order of their names. The locks of each are those with a
// planted bug that it shows, and its outcome names the judge that must find it.
func Stories() (all []*scenarios.Scenario, err error) {
	names, err := fs.Glob(files, "stories/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		sc, err := scenarios.Parse("live/planted/"+name, text, subject.Find)
		if err != nil {
			return nil, err
		}
		all = append(all, sc)
	}
	return all, nil
}
