// Package explore looks for schedules that break a lock, in campaigns. A campaign plays the
// runs of a plan, in one process or several. It makes one failure per group small and writes
// down what it found. Its parts are packages: draw draws the scenarios, strategy chooses
// the schedules, failure says what a failure is, and shrink makes it small.
package explore
