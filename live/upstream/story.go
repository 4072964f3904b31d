package upstream

import (
	"embed"
	"io/fs"
	"path"
	"strings"

	"lockstep/scenarios"
	"lockstep/scenarios/subject"
)

// stories has a scenario per defect of Redisson, which shows the defect in real time: steps of
// different threads are so far apart that their order is certain.
//
//go:embed stories/*.yaml
var stories embed.FS

// more has the stories of Register.
var more []fs.FS

// Story returns the scenario that shows the defect with that ID in real time; nil: there is none.
func Story(id string) (*scenarios.Scenario, error) {
	name := path.Join("stories", id+".yaml")
	for _, files := range append([]fs.FS{stories}, more...) {
		if text, err := fs.ReadFile(files, name); err == nil {
			return scenarios.Parse("live/upstream/"+name, text, subject.Find)
		}
	}
	return nil, nil
}

// IDs returns the IDs of the defects of Redisson that have a story, in order.
func IDs() []string {
	entries, err := fs.ReadDir(stories, "stories")
	if err != nil {
		panic("upstream: " + err.Error())
	}
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return out
}
