package frame

import (
	"encoding/csv"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"lockstep/internal/nearest"
	"lockstep/internal/quantity"
)

// An unfitError says what is wrong with the value of an option, in words that follow the value.
type unfitError string

func (e unfitError) Error() string { return string(e) }

// unfit returns the words about a value that an option does not take. The words of package strconv,
// which are not for users, are replaced.
func unfit(wrong *pflag.InvalidValueError) string {
	var own unfitError
	switch kind := wrong.GetFlag().Value.Type(); {
	case errors.As(wrong.Unwrap(), &own):
		return own.Error()
	case kind == "bool":
		return "want true or false"
	}
	return "want names with commas between them" // a list
}

// A number is the value of an option that takes a whole number within bounds.
type number[T int | int64] struct {
	to *T
	in quantity.Bounds
}

// Whole declares an option that takes a whole number. The default may be out of bounds.
func Whole[T int | int64](f *pflag.FlagSet, to *T, name string, value T, in quantity.Bounds, usage string) {
	*to = value
	f.Var(&number[T]{to, in}, name, usage)
}

func (n *number[T]) String() string { return fmt.Sprint(*n.to) }

func (n *number[T]) Type() string { return "N" }

func (n *number[T]) Set(text string) error {
	value, err := quantity.Whole(text, n.in)
	if err != nil {
		return unfitError(err.Error())
	}
	*n.to = T(value)
	return nil
}

// A seed is the value of an option that takes one seed.
type seed struct{ to *uint64 }

// OneSeed declares an option that takes one seed. Its default is the value that to has.
func OneSeed(f *pflag.FlagSet, to *uint64, name, usage string) { f.Var(seed{to}, name, usage) }

func (s seed) String() string { return fmt.Sprint(*s.to) }

func (seed) Type() string { return "N" }

func (s seed) Set(text string) error {
	value, err := quantity.Seed(text)
	if err != nil {
		return unfitError(err.Error())
	}
	*s.to = value
	return nil
}

// lengthLeast is the shortest duration that an option takes.
const lengthLeast = time.Millisecond

// A length is the value of an option that takes a duration.
type length struct{ to *time.Duration }

// Duration declares an option that takes a duration. Its default is the value that to has.
func Duration(f *pflag.FlagSet, to *time.Duration, name, usage string) {
	f.Var(length{to}, name, usage)
}

// String returns "" for 0, which stands for no limit.
func (l length) String() string {
	if *l.to == 0 {
		return ""
	}
	return l.to.String()
}

func (length) Type() string { return "D" }

func (l length) Set(text string) error {
	d, err := quantity.Duration(text, lengthLeast)
	if err != nil {
		return unfitError(err.Error())
	}
	*l.to = d
	return nil
}

// A word is the value of an option that takes one of several words.
type word struct {
	to    *string
	known []string
}

// OneOf declares an option that takes one of several words. The default may be another word.
func OneOf(f *pflag.FlagSet, to *string, name, value string, known []string, usage string) {
	*to = value
	f.Var(&word{to, known}, name, usage)
}

func (w *word) String() string { return *w.to }

func (w *word) Type() string { return "WORD" }

func (w *word) Set(text string) error {
	if !slices.Contains(w.known, text) {
		return unknownWord(text, w.known)
	}
	*w.to = text
	return nil
}

// once is the value of an option that is given once: in other commands the option may be repeated, and
// nobody should think that this command takes all of them.
type once struct{ to *string }

// Single declares an option that is given once.
func Single(f *pflag.FlagSet, to *string, name, usage string) { f.Var(&once{to}, name, usage) }

func (o *once) String() string { return *o.to }

func (o *once) Type() string { return "WORD" }

func (o *once) Set(text string) error {
	if *o.to != "" && *o.to != text {
		return unfitError(fmt.Sprintf("only one can be given, and %s is given, too", *o.to))
	}
	*o.to = text
	return nil
}

func unknownWord(text string, known []string) error {
	return unfitError(nearest.Hint(nearest.Near(text, known)) + "known are " + strings.Join(known, ", "))
}

// words is the value of an option that takes several of some words, with commas between them.
// The option may be repeated.
type words struct {
	to    *[]string
	known []string
}

// SomeOf declares an option that takes several of some words.
func SomeOf(f *pflag.FlagSet, to *[]string, name string, known []string, usage string) {
	f.Var(&words{to, known}, name, usage)
}

func (w *words) String() string { return strings.Join(*w.to, ",") }

func (w *words) Type() string { return "WORD,..." }

func (w *words) Set(text string) error {
	given, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil {
		return unknownWord("", w.known)
	}
	for _, one := range given {
		if !slices.Contains(w.known, one) {
			return unknownWord(one, w.known)
		}
	}
	*w.to = append(*w.to, given...)
	return nil
}

// A tag is the value of an option that takes the tag of scenarios.
type tag struct{ to *string }

func (t tag) String() string { return *t.to }

func (tag) Type() string { return "TAG" }

func (t tag) Set(text string) error {
	if text == "" {
		return unfitError("an empty tag; leave --tag out, or give it a value")
	}
	*t.to = text
	return nil
}

// tags is tag for an option that may be repeated.
type tags struct{ to *[]string }

// TagsFlag declares the option for tags of scenarios.
func TagsFlag(f *pflag.FlagSet, to *[]string) { f.Var(tags{to}, "tag", tagUsage+"; may be repeated") }

func (t tags) String() string { return strings.Join(*t.to, ",") }

func (tags) Type() string { return "TAG" }

func (t tags) Set(text string) error {
	var one string
	if err := (tag{&one}).Set(text); err != nil {
		return err
	}
	*t.to = append(*t.to, one)
	return nil
}

// A movedOption is the value of an option that another program has now.
type movedOption struct{ to string }

// MovedFlag declares an option that is refused with the command of another program that took its place.
func MovedFlag(f *pflag.FlagSet, name, to string) {
	f.Var(movedOption{to}, name, "is now "+to)
	f.Lookup(name).Hidden = true
}

func (movedOption) String() string { return "" }

func (movedOption) Type() string { return "WORD" }

func (m movedOption) Set(string) error { return unfitError("it is now `" + m.to + "`") }

// The options that several commands have.

const tagUsage = "the scenarios with this `TAG`: track-record or six-properties; the program in peers/ also has peers-track-record and stories"

// LockFlag declares the option for locks, which may be repeated.
func LockFlag(f *pflag.FlagSet, to *[]string, usage string) {
	f.StringSliceVar(to, "lock", nil, usage)
}

// TagFlag declares the option for a tag of scenarios.
func TagFlag(f *pflag.FlagSet, to *string) {
	f.Var(tag{to}, "tag", tagUsage)
}

// SeedFlag declares the option for one seed or several.
func SeedFlag(f *pflag.FlagSet, to *string, value, usage string) {
	f.StringVar(to, "seed", value, usage)
}

// JSONFlag declares the option for output that programs read.
func JSONFlag(f *pflag.FlagSet, to *bool, usage string) { f.BoolVar(to, "json", false, usage) }

// QuietFlag declares --quiet, which leaves the progress and the good news out. The output of --json
// and --format is the same with it.
func (a *App) QuietFlag(f *pflag.FlagSet, usage string) {
	f.BoolVar(&a.Quiet, "quiet", false, usage+"; no progress")
}

// ProgressFlag declares --quiet for a command whose output it does not change.
func (a *App) ProgressFlag(f *pflag.FlagSet) {
	f.BoolVar(&a.Quiet, "quiet", false, "no progress")
}

// JobsFlag declares the option for the number of processes that play: one per processor by default.
func JobsFlag(f *pflag.FlagSet, to *int) {
	Whole(f, to, "jobs", runtime.NumCPU(), quantity.Jobs, "processes that play")
	f.Lookup("jobs").DefValue = "one per processor"
}

// LiveJobsFlag declares the option for the number of live runs at a time.
func LiveJobsFlag(f *pflag.FlagSet, to *int, usage string) {
	Whole(f, to, "jobs", LiveJobs, quantity.LiveJobs, usage)
}

// WorkersFlag declares the option for the number of workers of a process: one per processor by
// default.
func WorkersFlag(f *pflag.FlagSet, to *int, in quantity.Bounds) {
	Whole(f, to, "workers", runtime.NumCPU(), in, "workers in this process")
	f.Lookup("workers").DefValue = "one per processor"
}

// LiveJobs is the default number of live runs at a time. Live runs mostly wait.
const LiveJobs = 4

// SeedRange reads the value of an option that takes one seed or several.
func SeedRange(option, s string) (from, to uint64, err error) {
	first, last, isRange := strings.Cut(s, "..")
	from, err1 := strconv.ParseUint(first, 10, 64)
	to, err2 := from, error(nil)
	if isRange {
		to, err2 = strconv.ParseUint(last, 10, 64)
	}
	if err1 != nil || err2 != nil || to < from {
		return 0, 0, fmt.Errorf("%s %q: write one number, or two as in 1..100, the smaller first", option, s)
	}
	return from, to, nil
}

// Texts returns words as strings.
func Texts[W ~string](words []W) (all []string) {
	for _, w := range words {
		all = append(all, string(w))
	}
	return all
}
