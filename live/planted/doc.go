// Package planted has stories about the bugs that were planted in locks. A story shows its bug on a
// real server: steps whose order matters are so far apart that their order is certain.
package planted

import (
	"embed"
	"io/fs"

	"lockstep/scenarios"
	"lockstep/scenarios/subject"
)

//go:embed stories/*.yaml
var files embed.FS

// Stories returns the stories in the order of their names. The locks of a story are the locks with
// the planted bug that it shows, and its expectation names the judge that must find the bug.
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
