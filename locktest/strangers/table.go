package strangers

import (
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"lockstep/explore"
	"lockstep/explore/draw"
	"lockstep/internal/counted"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// witnesses are scenarios that break mutants: the file MUTATION.yaml, or MUTATION.WHICH.yaml if a mutation has several.
// Each names the lock LOCK.
//
//go:embed witness/*.yaml
var witnesses embed.FS

// DefaultRuns is the number of drawn runs of locktest.Run, by which a mutant is found or not.
const DefaultRuns = 200

// Options say how much is measured.
type Options struct {
	// Size chooses the locks: each combination of so many choices is in one of them, see Right.
	Size int
	// Runs is the number of runs of each right lock with each profile, and Explore of each mutant.
	Runs, Explore int
	// Dir is the folder that keeps the results of each lock, so that a measurement that was interrupted goes on.
	Dir string
	// Shard and Of share the locks among processes, which have one Dir: this one measures those whose number modulo Of is Shard,
	// counted from 0.
	Shard, Of int
	// Progress is told of each lock that is done; nil: nobody asks.
	Progress func(done, of int, lock string)
}

// result is what was measured on a right lock and its mutants.
type result struct {
	Versions explore.Versions // of the program that measured
	Explore  int              // runs of each mutant
	Plumbing Plumbing
	Runs     int
	Accused  []Accusation // one of each judge
	Mutants  []mutant
}

// mutant is what was measured on one mutant.
type mutant struct {
	Name      string
	Mutation  Mutation
	Witness   string // the scenario or the run that breaks it; "": none does, so that it does not count
	ByDefault bool   // locktest.Run finds it
	ByExplore bool
}

// Table measures the judges on right locks and on their mutants, and writes the results as a page. Right locks play the
// stories, and runs with all faults and each profile. It returns false and writes nothing if other processes have not measured
// their locks.
func Table(w io.Writer, h *sim.Host, o Options) (whole bool, err error) {
	right := Right(o.Size)
	for i, p := range right {
		if i%max(o.Of, 1) != o.Shard {
			continue
		}
		_, ok, err := o.read(p)
		if err == nil && !ok {
			err = o.measure(h, p)
		}
		if err != nil {
			return false, fmt.Errorf("%s: %w", p, err)
		}
		if o.Progress != nil {
			o.Progress(i+1, len(right), p.String())
		}
	}
	var results []result
	for _, p := range right {
		r, ok, err := o.read(p)
		if err != nil || !ok {
			return false, err
		}
		results = append(results, r)
	}
	_, err = io.WriteString(w, page(results, o))
	return true, err
}

// file is the file for the result of a plumbing.
func (o Options) file(p Plumbing) string { return filepath.Join(o.Dir, p.String()+".json") }

// read returns the result that an earlier measurement kept. It returns false if there is none of these options and of this
// version of the program.
func (o Options) read(p Plumbing) (r result, ok bool, err error) {
	text, err := os.ReadFile(o.file(p))
	if errors.Is(err, fs.ErrNotExist) {
		return r, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, false, fmt.Errorf("%s is not the result of a lock; remove it: %w", o.file(p), err)
	}
	return r, r.Versions == versions() && r.Explore == o.Explore && r.Runs == o.Runs*len(draw.Profiles), nil
}

func (o Options) write(r result) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return err
	}
	return renameio.WriteFile(o.file(r.Plumbing), text, 0o644)
}

// versions are those of this program.
func versions() explore.Versions {
	return explore.Plan{World: sim.Version, Strategy: explore.DefaultStrategy}.Versions()
}

// measure measures a lock and its mutants, and keeps the result.
func (o Options) measure(h *sim.Host, p Plumbing) error {
	var r result
	r.Versions, r.Explore, r.Plumbing = versions(), o.Explore, p
	lock, err := register(h, p.Subject(Unchanged))
	if err != nil {
		return err
	}
	note := func(a Accusation) bool {
		if !slices.ContainsFunc(r.Accused, func(b Accusation) bool { return a.Judge == b.Judge }) {
			r.Accused = append(r.Accused, a)
		}
		return true
	}
	tellStories(h, lock, note)
	for _, profile := range draw.Profiles {
		played, err := drawRuns(h, lock, profile, 1, o.Runs, func(a Accusation, _ int) bool { return note(a) })
		if err != nil {
			return err
		}
		r.Runs += played
	}
	for _, m := range p.Mutations() {
		mutant, err := hunt(h, lock, p, m, o.Explore)
		if err != nil {
			return err
		}
		r.Mutants = append(r.Mutants, mutant)
	}
	return o.write(r)
}

// hunt looks for a mutant in the stories, in drawn runs, and in the scenarios that are its witnesses. What accuses the right
// lock, too, does not count.
func hunt(h *sim.Host, right *subject.Subject, p Plumbing, m Mutation, runs int) (x mutant, err error) {
	s := p.Subject(m)
	x.Name, x.Mutation = s.Name, m
	lock, err := register(h, s)
	if err != nil {
		return x, err
	}
	find := func(a Accusation) bool {
		alone, wrong := a.alone(h, right)
		if err = cmp.Or(err, wrong); alone {
			x.Witness = a.Where
		}
		return x.Witness == "" && err == nil
	}
	tellStories(h, lock, find)
	if x.Witness != "" || err != nil {
		x.ByDefault, x.ByExplore = true, true
		return x, err
	}
	found := 0
	_, drawing := drawRuns(h, lock, draw.Simple, 1, max(runs, DefaultRuns), func(a Accusation, run int) bool {
		found = run
		return find(a)
	})
	switch {
	case err != nil:
		return x, err
	case drawing != nil:
		return x, drawing
	case x.Witness != "":
		x.ByDefault, x.ByExplore = found <= DefaultRuns, true
		return x, nil
	}
	err = x.seekWitness(h, lock, find)
	return x, err
}

// seekWitness plays the scenarios for a mutation.
func (x *mutant) seekWitness(h *sim.Host, lock *subject.Subject, find func(Accusation) bool) error {
	files, err := fs.Glob(witnesses, "witness/"+string(x.Mutation)+".*")
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := witnesses.ReadFile(file)
		if err != nil {
			return err
		}
		sc, err := scenarios.Parse(file, []byte(strings.Replace(string(text), "LOCK", lock.Name, 1)), scenarios.AnyLock)
		if err != nil {
			return err
		}
		if play.Applies(sc, lock) == nil && !accuse(play.Run(h, sc, lock, sc.SeedFirst), "witness/"+path.Base(file), find) {
			return nil
		}
	}
	return nil
}

// page writes the results.
func page(results []result, o Options) string {
	var b strings.Builder
	command := fmt.Sprintf("go run ./cmd/strangers -size %d -runs %d -explore %d", o.Size, o.Runs, o.Explore)
	fmt.Fprintf(&b, "<!-- written by: %s -->\n# Locks of strangers\n\nPackage `locktest/strangers` builds locks of many plumbings of which a written argument says that they are right, and mutants of them. Each of the\n"+
		"%s plays the stories and, with each profile and all faults, %s. A mutant counts if a run or a scenario breaks it that does not break the right lock. It is found\n"+
		"by default if a story or one of %d drawn runs breaks it, and by `explore` if one of %d does. This page is written by `%s`.\n\n",
		command, counted.Of(len(results), "lock"), counted.Of(o.Runs, "run"), DefaultRuns, max(o.Explore, DefaultRuns), command)
	fmt.Fprint(&b, "| plumbing | right locks | runs | accused | mutants that count | found by default | by explore |\n|---|---|---|---|---|---|---|\n")
	writeRow(&b, "all", results)
	for _, kind := range kinds {
		if of := slices.DeleteFunc(slices.Clone(results), func(r result) bool { return !kind.has(r.Plumbing) }); len(of) > 0 {
			writeRow(&b, kind.name, of)
		}
	}
	fmt.Fprint(&b, "\n## Mutations\n\n| mutation | promise | mutants | count | found by default | by explore |\n|---|---|---|---|---|---|\n")
	for _, c := range changes {
		var all, count, byDefault, byExplore int
		for _, x := range mutantsOf(results) {
			if x.Mutation == c.Mutation {
				all++
				count, byDefault, byExplore = count+one(x.Witness != ""), byDefault+one(x.ByDefault), byExplore+one(x.ByExplore)
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d |\n", c.Mutation, c.breaks, all, count, byDefault, byExplore)
	}
	fmt.Fprint(&b, "\n## Mutants that are not found\n\n")
	missed := 0
	for _, x := range mutantsOf(results) {
		if x.Witness != "" && !x.ByExplore {
			fmt.Fprintf(&b, "* `%s`: only %s breaks it\n", x.Name, x.Witness)
			missed++
		} else if x.Witness != "" && !x.ByDefault {
			fmt.Fprintf(&b, "* `%s`: not by default; %s breaks it\n", x.Name, x.Witness)
			missed++
		}
	}
	if missed == 0 {
		fmt.Fprint(&b, "None.\n")
	}
	fmt.Fprint(&b, "\n## Right locks that are accused\n\n")
	accused := 0
	for _, r := range results {
		for _, a := range r.Accused {
			fmt.Fprintf(&b, "* `%s`, %s, `%s`: %s\n", a.Lock, a.Where, a.Judge, a.Why)
			accused++
		}
	}
	if accused == 0 {
		fmt.Fprint(&b, "None.\n")
	}
	return b.String()
}

func mutantsOf(results []result) (all []mutant) {
	for _, r := range results {
		all = append(all, r.Mutants...)
	}
	return all
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// writeRow writes the sums of some results.
func writeRow(w io.Writer, name string, results []result) {
	var runs, accused, count, byDefault, byExplore int
	for _, r := range results {
		runs, accused = runs+r.Runs, accused+one(len(r.Accused) > 0)
		for _, x := range r.Mutants {
			count, byDefault, byExplore = count+one(x.Witness != ""), byDefault+one(x.ByDefault), byExplore+one(x.ByExplore)
		}
	}
	fmt.Fprintf(w, "| %s | %d | %d | %d | %d | %s | %s |\n", name, len(results), runs, accused, count, share(byDefault, count), share(byExplore, count))
}

// share writes a number and its percentage.
func share(n, of int) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%d (%d %%)", n, 100*n/of)
}

// A kind is a row of the table: the locks that have one choice.
type kind struct {
	name string
	has  func(p Plumbing) bool
}

var kinds = slices.Concat(
	kindsOf("value", values, func(p Plumbing) Value { return p.Value }),
	kindsOf("renewal", renewals, func(p Plumbing) Renewal { return p.Renewal }),
	kindsOf("the unlock and the renewal:", stops, func(p Plumbing) Stop { return p.Stop }),
	kindsOf("release", releases, func(p Plumbing) Release { return p.Release }),
	kindsOf("wake-up", wakes, func(p Plumbing) Wake { return p.Wake }),
	kindsOf("sent again:", retries, func(p Plumbing) Retry { return p.Retry }),
	kindsOf("acquire", takings, func(p Plumbing) Taking { return p.Taking }),
	kindsOf("levels", levels, func(p Plumbing) Levels { return p.Levels }),
	kindsOf("servers", counts, func(p Plumbing) int { return p.Servers }),
	[]kind{
		{"tells of the end of a hold", func(p Plumbing) bool { return p.Lost }},
		{"fencing token", func(p Plumbing) bool { return p.Fenced }},
		{"extended by hand", func(p Plumbing) bool { return p.Extends }},
	},
)

func kindsOf[T comparable](name string, choices []T, of func(p Plumbing) T) (kinds []kind) {
	for _, choice := range choices {
		kinds = append(kinds, kind{fmt.Sprintf("%s %v", name, choice), func(p Plumbing) bool { return of(p) == choice }})
	}
	return kinds
}
