package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"lockstep/explore"
)

// Killed is the result of campaigns of several seeds on one planted bug.
type Killed struct {
	Bug   string         `json:"bug"`
	Judge string         `json:"judge"` // the judge that must find it
	Kills []explore.Kill `json:"kills"` // by seed, from 1
	// The first failure that was found is shrunk to Size events in Runs runs. Why is its
	// finding. Known is the known defect that the finding is taken for, or "".
	Size  int    `json:"size_events"`
	Runs  int    `json:"shrink_runs"`
	Why   string `json:"why,omitempty"`
	Known string `json:"known,omitempty"`
}

// KillRow is a row of the table of planted bugs, as the file beside the table has it.
type KillRow struct {
	Killed
	In   string `json:"in"` // the lock in which the bug was planted
	What string `json:"what"`
	Most int    `json:"at_most"` // runs of a campaign
	Look string `json:"look"`    // the arguments of simrun for a campaign of one run that shows the bug
}

// KillHead are the columns of the table, and cells returns a row of it.
var KillHead = []string{"planted bug", "in", "what is wrong", "judge", "runs", "at most", "found", "first", "events", "look"}

func (k KillRow) Cells() []string {
	median, size := "–", "–"
	if n := k.median(); n > 0 {
		median = strconv.Itoa(n)
	}
	if k.Why != "" {
		size = strconv.Itoa(k.Size)
	}
	return []string{k.Bug, k.In, k.What, k.Judge, median, strconv.Itoa(k.Most),
		fmt.Sprintf("%d of %d", len(k.Kills)-k.Alive(), len(k.Kills)), k.caught(), size, k.Look}
}

// KillRowsEnding is the extension of the file with the rows of a table. The rest of its name is
// that of the table.
const KillRowsEnding = ".jsonl"

// readKills reads the rows of a table of planted bugs.
func readKills(r io.Reader) (rows []KillRow, err error) {
	dec := json.NewDecoder(r)
	for {
		var k KillRow
		switch err := dec.Decode(&k); {
		case errors.Is(err, io.EOF):
			return rows, nil
		case err != nil:
			return nil, err
		}
		rows = append(rows, k)
	}
}

// Alive returns the number of seeds that did not find the bug.
func (k Killed) Alive() (n int) {
	for _, one := range k.Kills {
		if one.Runs == 0 {
			n++
		}
	}
	return n
}

// median returns the median over the seeds of the runs that it took to find the bug. It
// returns 0 if half of the seeds or more did not find it.
func (k Killed) median() int {
	var runs []int
	for _, one := range k.Kills {
		if one.Runs > 0 {
			runs = append(runs, one.Runs)
		}
	}
	slices.Sort(runs)
	if at := len(k.Kills) / 2; at < len(runs) {
		return runs[at]
	}
	return 0
}

// caught returns the judges that were broken in the first failing run of a seed, each with
// its number of seeds.
func (k Killed) caught() string {
	count := map[string]int{}
	for _, one := range k.Kills {
		for _, judge := range one.First {
			count[judge]++
		}
	}
	judges := mostFirst(count)
	for i, judge := range judges {
		judges[i] = fmt.Sprintf("%s %d", judge, count[judge])
	}
	return strings.Join(judges, ", ")
}
