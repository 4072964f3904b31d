// Package play runs a scenario on a subject in a simulated world and judges what
// happened. What it comes to is a [Verdict]; a [Recording] repeats it.
package play
