package survey

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lockstep/explore/draw"
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

// A Mark stands for a campaign in a table.
type Mark struct{ Letter, Campaign string }

// letters are the letters of campaigns.
var letters = map[string]string{
	NoFaults: "0", string(draw.ClassNetwork): "N", string(draw.ClassCrash): "C", string(draw.ClassPause): "P", string(draw.ClassPartition): "D", string(draw.ClassClock): "T",
	string(draw.ClassServer): "S", string(draw.ClassOperator): "O", string(draw.ClassWatchdog): "W", string(draw.ClassInterrupt): "I", Stories: "K",
}

// meanings are the words for campaigns whose names do not explain their letters.
var meanings = map[string]string{NoFaults: "without a fault", string(draw.ClassPartition): "partition (divided)", string(draw.ClassClock): "clock (time)", Stories: "stories (known)"}

// Legend returns the marks of the campaigns of a survey.
func (s Survey) Legend() (all []Mark) {
	for _, name := range s.campaigns() {
		all = append(all, Mark{letters[name], cmp.Or(meanings[name], name)})
	}
	return all
}

// Marks returns the marks of the campaigns that Where names.
func (s Summary) Marks() (all []Mark) {
	campaigns := s.Campaigns
	switch {
	case s.Word != Bug && s.Word != Limit:
		return nil
	case slices.Contains(campaigns, NoFaults):
		campaigns = []string{NoFaults}
	}
	for _, name := range campaigns {
		all = append(all, Mark{letters[name], cmp.Or(meanings[name], name)})
	}
	return all
}

// signs are the signs of words that a table has no room for.
var signs = map[Word]string{Held: "✓", Limit: "!", Bug: "✗", Undecided: "?", NotPromised: "–", NotJudged: "·"}

// Sign returns the sign of the word.
func (s Summary) Sign() string { return signs[s.Word] }

// Short returns the word as a table has it: a promise that the lock does not make has only its sign.
func (s Summary) Short() string {
	if s.Word == NotPromised {
		return s.Sign()
	}
	return string(s.Word)
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
