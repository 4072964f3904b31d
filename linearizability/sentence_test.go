package linearizability_test

import (
	"lockstep/linearizability"
	"lockstep/report/sentence"
)

func init() { linearizability.Sentence = sentence.History }
