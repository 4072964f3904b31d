package quantity

import (
	"strings"
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	for _, c := range []struct {
		text  string
		least time.Duration
		want  time.Duration
		err   string
	}{
		{"1m30s", 0, 90 * time.Second, ""},
		{"-5s", -time.Minute, -5 * time.Second, ""},
		{"0", 0, 0, ""},
		{"0", time.Millisecond, 0, "too short: at least 1ms"},
		{"-5s", time.Second, 0, "too short: at least 1s"},
		{"2.5", 0, 0, "not a duration, since it has no unit; write 2.5s, 2.5ms or 2.5us"},
		{"soon", 0, 0, "not a duration; write 1500ms, 2s or 1m30s"},
		{"", 0, 0, "not a duration; write 1500ms, 2s or 1m30s"},
		{"9999999999999h", 0, 0, "not a duration; write 1500ms, 2s or 1m30s"},
		{strings.Repeat("1", 100), 0, 0, "not a duration; write 1500ms, 2s or 1m30s"},
	} {
		got, err := Duration(c.text, c.least)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != c.want || text != c.err {
			t.Errorf("%q: %v, %q; want %v, %q", c.text, got, text, c.want, c.err)
		}
	}
}
