package judges_test

import (
	"lockstep/linearizability/judges"
	"lockstep/report/sentence"
)

func init() { judges.Sentence, judges.PartingSentence = sentence.Finding, sentence.Parting }
