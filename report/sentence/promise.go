package sentence

import "lockstep/model"

// promises are the promises that the judges ask about.
var promises = map[string]string{
	model.JudgeMutualExclusion: "at any instant, at most one thread believes that it holds the lock",
	model.JudgeMisdelete:       "no request of one thread ends, shortens or prolongs the hold of another",
	model.JudgeLinearizable:    "each call gets an answer that was true at some instant of the call",
	model.JudgeHoldCount:       "the servers count as many levels of a hold as its owner took and did not give up",
	model.JudgeFIFO:            "whoever tried first is served first",
	model.JudgeLease:           "a hold lasts as long as the lock said to its owner, and ends after that",
	model.JudgeLiveness:        "a thread that waits for a free lock gets it soon",
	model.JudgeWaitBound:       "a try with a wait returns when its wait is over",
	model.JudgeFencing:         "each hold has a greater token than all holds before it",
	model.JudgeTidy:            "nothing stays when everybody has left",
	model.JudgeTraffic:         "a thread that waits sends few requests",
	model.JudgeWorkload:        "the resource that the lock guards loses no update",
	model.JudgeWant:            "each call answers as the author of the scenario wants",
}

// Promise says which promise a judge asks about.
func Promise(judge string) string { return promises[judge] }
