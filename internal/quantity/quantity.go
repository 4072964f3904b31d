// Package quantity reads durations that people write, and says what is wrong with one.
package quantity

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// numberMost limits the number that an error repeats with units, in bytes.
const numberMost = 20

// Duration reads a duration that is not below least. The text of an error follows the words "it is".
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
