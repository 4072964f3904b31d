// Package play runs a scenario on a subject in a simulated world and judges the
// run. The result is a [Verdict]. A [Recording] repeats the run.
package play
