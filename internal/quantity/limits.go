package quantity

import "time"

// Limits of the numbers and durations that people give. A sum or a product of numbers within them does not
// overflow.
var (
	Runs       = Bounds{1, 1_000_000_000} // of a campaign, a survey or a scenario
	Drawn      = Bounds{0, Runs.Most}
	LiveRuns   = Bounds{1, 10_000}
	BlameRuns  = Bounds{1, 1_000_000}
	Campaigns  = Bounds{1, 1_000_000}
	Shards     = Bounds{1, 1_000_000}
	Steps      = Bounds{0, 1_000_000_000_000_000}
	Seconds    = Bounds{0, 1_000_000_000} // of a processor
	Orderings  = Bounds{1, 1000}          // of messages
	Jobs       = Bounds{1, 1024}
	Workers    = Bounds{0, Jobs.Most}
	LiveJobs   = Bounds{1, 64}
	Ahead      = Bounds{1, 1 << 16} // families in a queue
	DriftPPM   = Bounds{0, 999_999}
	TestTries  = Bounds{0, 100}
	BenchTimes = Bounds{1, 1000}
)

// Longest is the longest duration. With it and model.LongestRun every instant is within the 292 years that an int64 of
// nanoseconds can hold, of which 30 have passed when a bubble of synctest begins.
const Longest = 10 * 365 * 24 * time.Hour
