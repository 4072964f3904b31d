package evidence

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"lockstep/cli"
	"lockstep/explore"
	"lockstep/explore/survey"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
)

// A product is what one command writes into a folder of results: a part, or all campaigns of a folder.
type product struct {
	name string
	// files are the patterns of path.Match for the names of its files.
	files   []string
	checked checked
	// parts returns its parts, with everything but the fields above.
	parts func(r *renewal) ([]part, error)
}

// checked says how a product is checked.
type checked int

const (
	// comparedWhole: a test runs its command and compares all files. results --check compares its versions.
	comparedWhole checked = iota
	// comparedWithParts: a test writes it from the committed parts that it summarizes, and compares it. It has no versions
	// of its own.
	comparedWithParts
	// replayed: tests replay its recordings. results --check compares its versions, and looks for
	// its recordings.
	replayed
	// dated: results --check compares its versions. Its figures are of real time, or take hours.
	dated
	// unchecked: its figures are of one machine.
	unchecked
)

// A shelved folder holds campaigns. Their recordings of known defects and of limits are on a shelf,
// and a page sums the campaigns up. Another program, which has other locks, plays the campaigns in peers.
type shelved struct{ folder, summary, shelf string }

var campaignFolders = []shelved{
	{"exhaustive", "exhaustive.md", ownShelf},
	{"explore", "findings.md", ownShelf},
	{"peers", "peers.md", peersShelf},
}

// ownShelf is the shelf of the campaigns of this program, and peersShelf that of the program in peers.
const ownShelf, peersShelf = "recordings", "peers-recordings"

// peersRecord is the tag of the track record of other people's locks, and the folder of its
// results. The program in peers knows these scenarios.
const peersRecord = "peers-track-record"

// library is the release of the Java library that the reports of results are about.
const library = "4.7.0"

// tooLongLive are the built-in scenarios whose steps take an hour and 40 minutes, which the comparison
// of locks in Go leaves out.
var tooLongLive = []string{"never-unlocked", "inventory"}

// peersTags are the tags of the stories of the locks in peers/. peersAgreementFile has the
// comparison of both worlds that plays them.
var peersTags = []string{"stories", "fenced", peersRecord}

const peersAgreementFile = "agreement-peers.md"

// products lists everything that a folder of results may have, in the order in which it is written. A summary
// comes after the parts that it summarizes.
func products() []product {
	all := []product{
		{"verdicts", append(scenarioRecordings(), cli.VerdictsPage, explore.VerdictsFile, cli.VersionsFile), comparedWhole, verdictParts},
		{"track-record", []string{"track-record.md"}, comparedWhole, matrixPart("track-record.md")},
		{"six-properties", []string{"six-properties.md"}, comparedWhole, matrixPart("six-properties.md", "--tag", "six-properties")},
		{"kill", pageAndLines("kill-table"), dated, killParts},
		{peersRecord, []string{peersRecord + "/*.md", peersRecord + "/*.json", peersRecord + "/*.jsonl", peersRecord + "/*/*/*.lockstep"}, replayed, peersRecordParts},
		{"repeatability", []string{cli.RepeatabilityFile}, dated, repeatabilityParts},
	}
	for _, c := range campaignFolders {
		all = append(all,
			product{c.folder, []string{
				path.Join(c.folder, "*", cli.VerdictsPage), path.Join(c.folder, "*", explore.VerdictsFile), path.Join(c.folder, "*", "*", "*.lockstep"), path.Join(c.shelf, "*.lockstep"),
			}, replayed, c.campaigns},
			product{c.folder + "-summary", []string{c.summary}, comparedWithParts, c.summaries})
	}
	return append(all,
		product{"survey", []string{survey.MarkdownFile, survey.PageFile, survey.LocksFile, path.Join(survey.RecordingsDir, "*", "*.lockstep")}, replayed, surveyParts},
		product{"agreement", pageAndLines("agreement"), dated, agreementParts},
		product{"agreement-ports", pageAndLines("agreement-ports"), dated, portsAgreementParts},
		product{"agreement-planted", pageAndLines("agreement-planted"), dated, plantedAgreementParts},
		product{"agreement-peers", pageAndLines("agreement-peers"), dated, peersAgreementParts},
		product{upstreamName, reports(upstreamName), dated, upstreamParts},
		product{peersUpstream, reports(peersUpstream), dated, peersUpstreamParts},
		product{"performance", pageAndLines("performance"), unchecked, performanceParts},
		product{"strangers", []string{"strangers.md"}, dated, byAnotherProgram},
	)
}

// productOf returns the product that a file of a folder of results belongs to; nil: no command writes it.
func productOf(all []product, file string) *product {
	for i := range all {
		if slices.ContainsFunc(all[i].files, func(pattern string) bool {
			ok, err := path.Match(pattern, file)
			return ok && err == nil
		}) {
			return &all[i]
		}
	}
	return nil
}

// productNames returns the names of all products.
func productNames() (names []string) {
	for _, p := range products() {
		names = append(names, p.name)
	}
	return names
}

// pageAndLines returns the files of a table and of its data.
func pageAndLines(name string) []string { return []string{name + ".md", name + ".jsonl"} }

// reports returns the files of upstream: its table, and the reports.
func reports(name string) []string {
	return append(pageAndLines(name), path.Join(name, "*", reportFile), path.Join(name, "*", storyFile))
}

// builtin returns the built-in scenarios.
var builtin = sync.OnceValue(func() []*scenarios.Scenario {
	all, err := scenarios.Builtin()
	if err != nil {
		panic("evidence: " + err.Error()) // they are a part of the program
	}
	return all
})

// scenarioRecordings returns the patterns of the recordings of the built-in scenarios.
func scenarioRecordings() (patterns []string) {
	for _, sc := range builtin() {
		patterns = append(patterns, sc.Name+"/*/*.lockstep")
	}
	return patterns
}

// parts lists the parts of the folder in the order in which they are written. Campaigns are listed if
// the folder has them.
func (r *renewal) parts() (all []part, err error) {
	for _, p := range products() {
		these, err := p.parts(r)
		if err != nil {
			return nil, err
		}
		for _, x := range these {
			if x.name == "" {
				x.name = p.name
			}
			x.checked = p.checked
			if x.file == "" && p.checked != comparedWithParts && p.checked != unchecked {
				x.file = cli.VersionsFile
			}
			all = append(all, x)
		}
	}
	return all, nil
}

// untold returns the versions of this program without that of the stories, which only campaigns tell.
func untold() explore.Versions { return explore.CurrentVersions().Untold() }

func verdictParts(*renewal) ([]part, error) {
	return []part{{uses: untold().Played(), write: func(r *renewal) error { return r.command("run", "--out", r.dir) }}}, nil
}

// matrixPart returns a part that is a table of matrix.
func matrixPart(file string, args ...string) func(*renewal) ([]part, error) {
	args = append([]string{"matrix"}, append(args, "--format", "markdown")...)
	return func(*renewal) ([]part, error) {
		return []part{{uses: untold().Played(), write: func(r *renewal) error { return r.output(file, args...) }}}, nil
	}
}

func killParts(*renewal) ([]part, error) {
	planted, err := cli.FindLocks(plantedLocks())
	return []part{{uses: untold(), locks: planted, write: func(r *renewal) error {
		return r.command("kill", "--jobs", strconv.Itoa(r.jobs), "-o", filepath.Join(r.dir, "kill-table.md"))
	}}}, err
}

// plantedLocks returns the names of the locks with planted bugs.
func plantedLocks() (names []string) {
	for _, name := range plantedNames() {
		names = append(names, subject.PlantedPrefix+name)
	}
	return names
}

// ofPeers returns a part that the program in peers writes. Another program knows of the part if the folder has its file.
func (r *renewal) ofPeers(p part, file string, tags ...string) []part {
	for _, tag := range tags {
		has, known := r.tags[tag]
		if !known {
			_, err := scenarios.Tagged(tag)
			has = err == nil
			if r.tags == nil {
				r.tags = map[string]bool{}
			}
			r.tags[tag] = has
		}
		p.foreign = p.foreign || !has
	}
	if p.absent = r.lacks(file); p.absent && p.foreign {
		return nil
	}
	return []part{p}
}

func peersRecordParts(r *renewal) ([]part, error) {
	return r.ofPeers(part{uses: untold().Played(), write: func(r *renewal) error {
		if err := r.command("run", "--tag", peersRecord, "--out", filepath.Join(r.dir, peersRecord)); err != nil {
			return err
		}
		return r.output(filepath.Join(peersRecord, "table.md"), "matrix", "--tag", peersRecord, "--format", "markdown")
	}}, peersRecord, peersRecord), nil
}

func repeatabilityParts(r *renewal) ([]part, error) {
	return r.ofPeers(part{uses: untold().Recorded(), write: func(r *renewal) error {
		args := []string{"repeat", "--runs", "2000", "--seeds", "1..200", "--jobs", strconv.Itoa(r.jobs), "--out", r.dir}
		for _, name := range r.a.Own {
			args = append(args, "--lock", name)
		}
		return r.command(args...)
	}}, cli.RepeatabilityFile, peersRecord), nil
}

// dirs returns the folders of the campaigns in a folder of results.
func (c shelved) dirs(r *renewal) (dirs []string, err error) {
	files, err := filepath.Glob(filepath.Join(r.dir, c.folder, "*", explore.VerdictsFile))
	for _, file := range files {
		dirs = append(dirs, filepath.Dir(file))
	}
	return dirs, err
}

// campaigns returns the parts that are the campaigns of the folder.
func (c shelved) campaigns(r *renewal) (all []part, err error) {
	dirs, err := c.dirs(r)
	for _, dir := range dirs {
		all = append(all, r.campaignPart(c, c.folder+"/"+filepath.Base(dir)))
	}
	return all, err
}

// summaries returns the part that is the summary of the campaigns, if there are any.
func (c shelved) summaries(r *renewal) ([]part, error) {
	all, err := c.campaigns(r)
	if len(all) == 0 {
		return nil, err
	}
	return []part{{foreign: all[len(all)-1].foreign, write: c.sumUp}}, nil
}

// sumUp moves the recordings of the campaigns to the shelf, and writes the summary of the campaigns.
func (c shelved) sumUp(r *renewal) error {
	dirs, err := c.dirs(r)
	if err == nil {
		err = c.shelve(r, dirs...)
	}
	if err != nil {
		return err
	}
	return r.command(append(append([]string{"findings"}, dirs...), "-o", filepath.Join(r.dir, c.summary))...)
}

// shelve moves the recordings of campaigns to the shelf, and removes those of which no campaign has need.
func (c shelved) shelve(r *renewal, dirs ...string) error {
	shelf := explore.Shelf{Dir: filepath.Join(r.dir, c.shelf), Host: r.a.Host}
	for _, dir := range dirs {
		if err := shelf.Add(dir); err != nil {
			return err
		}
	}
	var all []string
	for _, other := range campaignFolders {
		if other.shelf != c.shelf {
			continue
		}
		dirs, err := other.dirs(r)
		if err != nil {
			return err
		}
		all = append(all, dirs...)
	}
	return shelf.Sweep(all)
}

func surveyParts(r *renewal) ([]part, error) {
	s, _, err := cli.OpenSurvey(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	locks, unknown := cli.SurveyLocks(s)
	return []part{{file: survey.LocksFile, uses: explore.CurrentVersions(), locks: locks, foreign: unknown != nil, write: func(r *renewal) error {
		args := []string{"survey", "--runs", strconv.Itoa(s.Options.Runs), "--seed", strconv.FormatUint(s.Options.Seed, 10), "--jobs", strconv.Itoa(r.jobs), "--out", r.dir}
		for _, name := range s.Chosen {
			args = append(args, "--lock", name)
		}
		// Each lock gets the runs that it had. With --seconds, the speed of the machine would decide.
		for _, l := range s.Locks {
			if _, err := subject.Find(l.Name); err == nil && l.Runs != s.Options.Runs {
				args = append(args, "--runs-of", fmt.Sprintf("%s=%d", l.Name, l.Runs))
			}
		}
		return r.command(args...)
	}}}, nil
}

// javaLocks returns the names of the locks of the library itself, and the ports that they stand for.
func javaLocks() (java []string, ports []*subject.Subject) {
	var fair []string
	for _, l := range subject.All() {
		switch l.Family() {
		case "redisson":
			java, ports = append(java, libraryLock+"@"+l.Release), append(ports, l)
		case "redisson-fair":
			fair, ports = append(fair, libraryFairLock+"@"+l.Release), append(ports, l)
		}
	}
	return append(java, fair...), ports
}

// agreedPorts returns the built-in scenarios of the comparison of locks in Go, and their locks.
func agreedPorts() (names, locks []string) {
	for _, sc := range builtin() {
		if slices.Contains(tooLongLive, sc.Name) {
			continue
		}
		names = append(names, sc.Name)
		for _, l := range sc.Locks {
			if !slices.Contains(locks, l) {
				locks = append(locks, l)
			}
		}
	}
	return names, locks
}

// playedLive returns a part that is played on real servers in real time, and so needs programs that a machine may lack. Without
// such programs only a folder that has its page has the part.
func (r *renewal) playedLive(p part, page string) []part {
	if r.a.Live == nil && r.lacks(page) {
		return nil
	}
	if locks, err := cli.FindLocks(p.live); err == nil && p.locks == nil { // another program may have them
		p.locks = locks
	}
	return []part{p}
}

// agree returns a function that writes a comparison of both worlds.
func agree(file, runs string, args, locks []string) func(*renewal) error {
	return func(r *renewal) error {
		args := append([]string{"agree"}, args...)
		for _, name := range locks {
			args = append(args, "--lock", name)
		}
		return r.command(append(args, "--runs", runs, "-o", filepath.Join(r.dir, file))...)
	}
}

func agreementParts(r *renewal) ([]part, error) {
	java, ports := javaLocks()
	return r.playedLive(part{uses: untold().Played(), locks: ports, live: java, write: agree("agreement.md", "2", nil, java)}, "agreement.md"), nil
}

func portsAgreementParts(r *renewal) ([]part, error) {
	names, locks := agreedPorts()
	return r.playedLive(part{uses: untold().Played(), live: locks, write: agree("agreement-ports.md", "1", names, nil)}, "agreement-ports.md"), nil
}

func plantedAgreementParts(r *renewal) ([]part, error) {
	return r.playedLive(part{uses: untold().Played(), live: plantedLocks(), write: agree("agreement-planted.md", "2", []string{"--planted"}, nil)}, "agreement-planted.md"), nil
}

func upstreamParts(r *renewal) ([]part, error) {
	java, ports := javaLocks()
	return r.playedLive(part{uses: upstreamVersions(), locks: ports, live: java, write: func(r *renewal) error {
		return r.command("upstream", "--release", library, "--runs", "2", "--results", r.dir)
	}}, upstreamName+".md"), nil
}

// ofPeersLive returns a part that the program in peers plays live.
func (r *renewal) ofPeersLive(p part, page string) (all []part) {
	for _, x := range r.ofPeers(p, page, peersTags...) {
		if !x.foreign {
			for _, l := range ownLive(r.a) {
				x.live = append(x.live, l.Name)
			}
		}
		all = append(all, r.playedLive(x, page)...)
	}
	return all
}

func peersAgreementParts(r *renewal) ([]part, error) {
	var tagged []string
	for _, tag := range peersTags {
		tagged = append(tagged, "--tag", tag)
	}
	return r.ofPeersLive(part{uses: untold().Played(), write: agree(peersAgreementFile, "1", append(tagged, "--jobs", "8"), nil)}, peersAgreementFile), nil
}

func peersUpstreamParts(r *renewal) ([]part, error) {
	return r.ofPeersLive(part{uses: upstreamVersions(), write: func(r *renewal) error {
		return r.command("upstream", "--peers", "--runs", "3", "--tries", "3", "--results", r.dir)
	}}, peersUpstream+".md"), nil
}

// byAnotherProgram returns no part: a program of its own writes the product, and takes long.
func byAnotherProgram(*renewal) ([]part, error) { return nil, nil }

func performanceParts(*renewal) ([]part, error) {
	return []part{{write: func(r *renewal) error {
		if out := filepath.Join(r.dir, "performance.md"); out != filepath.Join("results", "performance.md") {
			return r.command("bench", "--out", out)
		}
		return r.command("bench")
	}}}, nil
}

// lacks reports whether the folder does not have a file.
func (r *renewal) lacks(name string) bool {
	_, err := os.Stat(filepath.Join(r.dir, name))
	return err != nil
}

// strays returns the files of the folder that no command writes, in order.
func (r *renewal) strays() (names []string, err error) {
	all := products()
	err = fs.WalkDir(os.DirFS(r.dir), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
		case !d.IsDir() && productOf(all, name) == nil:
			names = append(names, name)
		}
		return nil
	})
	return names, err
}
