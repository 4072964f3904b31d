package survey

import (
	"fmt"
	"slices"
	"strings"
)

// Summary says how a lock kept one promise in all campaigns.
type Summary struct {
	Word Word
	// Campaigns are the names of the campaigns in which the promise was broken as Word says.
	Campaigns []string
	// broken has the number of runs that broke it in each of these, as in "1 of 100".
	broken    []string
	Recording string // the recording of the first bug
	Runs      int    // the number of runs of all campaigns
}

// Summary sums up the cells of a promise.
func (l Lock) Summary(promise string) Summary {
	var s Summary
	for _, word := range []Word{Bug, Limit, Undecided, Held, NotPromised, NotJudged, NoSuchFault} {
		for _, c := range l.Cells {
			if c.Promise != promise || c.Word != word {
				continue
			}
			s.Word = word
			s.Campaigns = append(s.Campaigns, c.Faults)
			s.broken = append(s.broken, fmt.Sprintf("%d of %d", c.Broken, c.Runs))
			if s.Recording == "" {
				s.Recording = c.Recording
			}
		}
		if s.Word != "" {
			break
		}
	}
	for _, c := range l.Cells {
		if c.Promise == promise {
			s.Runs += c.Runs
		}
	}
	return s
}

// String returns the word and the campaigns that broke the promise.
func (s Summary) String() string { return string(s.Word) + s.Where() }

// Where returns the text that follows the word: in which campaigns the promise broke, or "" if in
// none. If the promise breaks without a fault, the text says only that, since the promise then
// breaks with any.
func (s Summary) Where() string {
	switch {
	case s.Word != Bug && s.Word != Limit:
		return ""
	case slices.Contains(s.Campaigns, NoFaults):
		return " without a fault"
	default:
		return ": " + strings.Join(s.Campaigns, ", ")
	}
}

// Counted is String with the number of runs that broke the promise in each campaign.
func (s Summary) Counted() string {
	if s.Word != Bug && s.Word != Limit {
		return s.String()
	}
	if i := slices.Index(s.Campaigns, NoFaults); i >= 0 {
		return s.String() + " in " + s.broken[i]
	}
	counted := slices.Clone(s.Campaigns)
	for i := range counted {
		counted[i] += " " + s.broken[i]
	}
	return string(s.Word) + ": " + strings.Join(counted, ", ")
}
