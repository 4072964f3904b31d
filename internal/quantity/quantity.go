// Package quantity reads the numbers and durations that people write, and says what is wrong with one.
package quantity

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// numberMost limits the number that an error repeats with units, in bytes.
const numberMost = 20

// Duration reads a duration that is not below least. An error says what the text is, as in "too short: at least 1s".
func Duration(text string, least time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil {
		if d < least {
			return 0, fmt.Errorf("too short: at least %v", least)
		}
		return d, nil
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil && len(text) <= numberMost {
		return 0, fmt.Errorf("not a duration, since it has no unit; write %ss, %sms or %sus", text, text, text)
	}
	return 0, errors.New("not a duration; write 1500ms, 2s or 1m30s")
}

// Whole reads a whole number within bounds. If most is math.MaxInt, only the least number is a bound.
func Whole(text string, least, most int64) (int64, error) {
	value, err := strconv.ParseInt(text, 0, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("want a whole number from %d to %d", least, most)
	case err != nil:
		return 0, errors.New("want a whole number")
	case value < least || value > most:
		return 0, errors.New(Bounds(least, most))
	}
	return value, nil
}

// Bounds returns the words about the bounds of a whole number.
func Bounds(least, most int64) string {
	if most == math.MaxInt {
		return fmt.Sprintf("at least %d", least)
	}
	return fmt.Sprintf("from %d to %d", least, most)
}

// Seed reads the seed of a chooser.
func Seed(text string) (uint64, error) {
	value, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return 0, fmt.Errorf("want a whole number from 0 to %d", uint64(math.MaxUint64))
	}
	return value, nil
}
