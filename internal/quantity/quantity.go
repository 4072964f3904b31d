// Package quantity reads the numbers and durations that people write, and says what is wrong with one.
package quantity

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"
)

// numberMost limits the number that an error repeats with units, in bytes.
const numberMost = 20

// overflows matches a duration that package time refuses, since it is too long.
var overflows = regexp.MustCompile(`^-?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`)

// Duration reads a duration that is not below least, nor longer than Longest. An error says what the text is, as in
// "too short: at least 1s".
func Duration(text string, least time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err == nil && d < least && d >= -Longest:
		return 0, fmt.Errorf("too short: at least %v", least)
	case err == nil && d.Abs() > Longest, err != nil && overflows.MatchString(text):
		return 0, fmt.Errorf("too long: at most %gh, ten years", Longest.Hours())
	case err == nil:
		return d, nil
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil && len(text) <= numberMost {
		return 0, fmt.Errorf("not a duration, since it has no unit; write %ss, %sms or %sus", text, text, text)
	}
	return 0, errors.New("not a duration; write 1500ms, 2s or 1m30s")
}

// Bounds are the least and the greatest value of a whole number.
type Bounds struct{ Least, Most int64 }

func (b Bounds) String() string { return fmt.Sprintf("from %d to %d", b.Least, b.Most) }

// Whole reads a whole number within bounds.
func Whole(text string, in Bounds) (int64, error) {
	value, err := strconv.ParseInt(text, 0, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		return 0, errors.New("want a whole number")
	case err != nil || value < in.Least || value > in.Most:
		return 0, errors.New(in.String())
	}
	return value, nil
}

// Seed reads the seed of a chooser.
func Seed(text string) (uint64, error) {
	value, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("want a whole number from 0 to %d", uint64(math.MaxUint64))
	}
	return value, nil
}
