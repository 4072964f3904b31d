package cli

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // the template
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"

	"lockstep/explore"
	"lockstep/explore/spread"
	"lockstep/internal/foreign"
	"lockstep/report"
)

//go:embed farm.html
var farmHTML string

var farmTemplate = template.Must(template.New("farm").Parse(farmHTML))

// FarmPageFile is the page of a farm, in its folder.
const FarmPageFile = "index.html"

// onlyFarms returns an error if a folder has another page where a farm is to write its own.
func onlyFarms(dir string) error {
	file := filepath.Join(dir, FarmPageFile)
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && bytes.Contains(text, []byte("<title>"+farmTitle)) {
		return nil
	}
	return errors.Join(fmt.Errorf("%s would be overwritten, and the command farm did not write it; name another folder", file), err)
}

// farmTitle is the beginning of the title of each farm's page.
const farmTitle = "Farm: "

// FarmPage is the page of a farm. It has the campaigns, their findings and the speed.
type FarmPage struct {
	dir     string // of the farm
	title   string
	now     func() time.Time
	Workers func() []spread.Told // nil: there are none yet
	// canaries returns the canaries, and sentences about their problems; nil: there are none. The
	// caller holds the mutex.
	canaries func() ([]FarmCanary, []string)

	mu        sync.Mutex
	over      bool
	campaigns []*FarmRow
	played    int // runs that this start has played, of the campaigns whose turn is over
	speeds    []farmSpeed
}

// FarmRow is a campaign on the page.
type FarmRow struct {
	Command string
	State   string
	Runs    int
	Of      int // 0: nobody knows
	Steps   int64
	States  int
	Groups  []farmGroup

	page   *FarmPage
	dir    string // its folder, relative to the folder of the farm
	played int    // runs that this start has played in this turn
}

// farmGroup is a kind of failure on the page.
type farmGroup struct {
	Class, Judge, Op, Known string
	Runs                    int // 0: nobody has counted yet
	Size                    int
	Why, Link               string
}

// FarmCanary is a planted bug on the page.
type FarmCanary struct {
	Bug, Judge, Found string
	Runs              int
	Alarm             string
}

// farmSpeed is a number of runs at an instant.
type farmSpeed struct {
	at   time.Time
	runs int
}

// NewFarmPage returns the page of a farm in a folder. canaries may be nil.
func NewFarmPage(dir, about string, canaries func() ([]FarmCanary, []string)) *FarmPage {
	return &FarmPage{dir: dir, title: farmTitle + about, now: time.Now, canaries: canaries}
}

// With calls f while nobody reads or writes the page.
func (p *FarmPage) With(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// Row adds a campaign, with the results in its folder. A plan without runs belongs to a campaign
// that grows.
func (p *FarmPage) Row(plan explore.Plan, dir string) *FarmRow {
	r := &FarmRow{Command: strings.Join(plan.Args(), " "), State: "waits", Of: plan.Runs, page: p, dir: dir}
	folder := filepath.Join(p.dir, dir)
	if then, runs, err := explore.Merge([]string{folder}); err == nil {
		r.Command, r.Of = strings.Join(then.Args(), " "), then.Runs
		r.sum(explore.Sum(then, runs), nil)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.campaigns = append(p.campaigns, r)
	return r
}

// sum sets the figures of a campaign. small is nil until its failures are small.
func (r *FarmRow) sum(o explore.Tally, small []explore.Shrunk) {
	r.Runs, r.Steps, r.Groups = o.Runs, o.Steps, nil
	if n := len(o.Curve); n > 0 {
		r.States = o.Curve[n-1].States
	}
	for i, g := range o.Groups {
		shown := groupOf(g.Failed)
		shown.Runs = g.Count
		if small != nil {
			shown.Size, shown.Why = small[i].Size, small[i].Why
			if name := g.Recording(small[i]); name != "" {
				shown.Link = r.link(name)
			}
		}
		r.Groups = append(r.Groups, shown)
	}
}

func (r *FarmRow) link(name string) string {
	return (&url.URL{Path: "./" + filepath.ToSlash(filepath.Join(r.dir, name))}).String()
}

func groupOf(f explore.Failed) farmGroup {
	return farmGroup{Class: string(f.Class), Judge: f.Judge, Op: string(f.Op), Known: cmp.Or(f.Defect, f.Excuse), Size: f.Size, Why: f.Why}
}

// Plan notes the plan of a campaign that grows.
func (r *FarmRow) Plan(p explore.Plan) {
	r.page.mu.Lock()
	defer r.page.mu.Unlock()
	r.Command, r.Of = strings.Join(p.Args(), " "), p.Runs
}

// Progress notes how far a campaign is.
func (r *FarmRow) Progress(now explore.Progress) {
	p := r.page
	p.mu.Lock()
	defer p.mu.Unlock()
	r.State, r.Runs, r.Of, r.Steps, r.States, r.played = "is played", now.Runs, now.Of, now.Steps, now.States, now.Played
}

// Found notes the first failure of a group.
func (r *FarmRow) Found(f explore.Failed, recording string) {
	p := r.page
	p.mu.Lock()
	defer p.mu.Unlock()
	g := groupOf(f)
	if rel, err := filepath.Rel(filepath.Join(p.dir, r.dir), recording); err == nil {
		g.Link = r.link(rel)
	}
	r.Groups = append(r.Groups, g)
}

// Small notes that the failures of a campaign are made small.
func (r *FarmRow) Small() { r.Rest("its failures are made small") }

// Rest notes that a campaign plays no runs at the moment, and the state that the page shows.
func (r *FarmRow) Rest(state string) {
	p := r.page
	p.mu.Lock()
	defer p.mu.Unlock()
	r.State = state
	p.played += r.played
	r.played = 0
}

// Concluded notes the result of a campaign.
func (r *FarmRow) Concluded(o explore.Tally, small []explore.Shrunk) {
	p := r.page
	p.mu.Lock()
	defer p.mu.Unlock()
	r.sum(o, small)
	switch {
	case o.Full:
		r.State = "is full"
	case o.Missing == 0 && o.Unfinished == 0:
		r.State = "is complete"
	default:
		r.State = "is incomplete"
	}
}

// speedOver is the time over which the page computes the speed.
const speedOver = time.Minute

// speed says how fast runs are played. The caller holds the mutex.
func (p *FarmPage) speed(now time.Time) string {
	runs := p.played
	for _, r := range p.campaigns {
		runs += r.played
	}
	p.speeds = slices.DeleteFunc(p.speeds, func(s farmSpeed) bool { // also correct after the clock was set back
		return now.Sub(s.at) > speedOver || now.Before(s.at)
	})
	p.speeds = append(p.speeds, farmSpeed{now, runs})
	first := p.speeds[0]
	if passed := now.Sub(first.at); passed > 0 {
		return fmt.Sprintf("%.0f runs a second in the last %v; %d runs since this start.", float64(runs-first.runs)/passed.Seconds(), passed.Round(time.Second), runs)
	}
	return fmt.Sprintf("%d runs since this start.", runs)
}

// write writes the page.
func (p *FarmPage) write() error {
	p.mu.Lock()
	now := p.now()
	var workers []spread.Told
	if p.Workers != nil {
		workers = p.Workers()
	}
	var birds []FarmCanary
	var alarms []string
	if p.canaries != nil {
		birds, alarms = p.canaries()
	}
	state := "The coordinator runs."
	if p.over {
		state, workers = "The coordinator has ended.", nil
	}
	var b bytes.Buffer
	err := foreign.Page(&b, farmTemplate, struct {
		Title, State, At, Speed string
		Style                   template.CSS
		Over, AnyGroup          bool
		Alarms                  []string
		Campaigns               []*FarmRow
		Workers                 []spread.Told
		Canaries                []FarmCanary
	}{
		p.title, state, now.UTC().Format("2006-01-02 15:04:05 UTC"), p.speed(now), template.CSS(report.Style()),
		p.over, slices.ContainsFunc(p.campaigns, func(r *FarmRow) bool { return len(r.Groups) > 0 }),
		alarms, p.campaigns, workers, birds,
	})
	p.mu.Unlock()
	if err != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(p.dir, FarmPageFile), b.Bytes(), 0o644)
}

// farmPageEvery is the time between two versions of the page.
const farmPageEvery = 2 * time.Second

// Keep writes the page again and again until ctx ends, and fails with its first error.
func (p *FarmPage) Keep(ctx context.Context, fail func(error)) (wait func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(farmPageEvery)
		defer tick.Stop()
		for {
			if err := p.write(); err != nil {
				fail(err)
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { <-ended }
}

// End writes the page for the last time.
func (p *FarmPage) End() error {
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	return p.write()
}
