package quantity

import (
	"math"
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
		{"87600h", 0, Longest, ""},
		{"87600h1ns", 0, 0, "too long: at most 87600h, ten years"},
		{"-87601h", math.MinInt64, 0, "too long: at most 87600h, ten years"},
		{"-87600h", math.MinInt64, -Longest, ""},
		{"9999999999999h", 0, 0, "too long: at most 87600h, ten years"},
		{"-9999999999999h5m", math.MinInt64, 0, "too long: at most 87600h, ten years"},
		{strings.Repeat("1", 100), 0, 0, "not a duration; write 1500ms, 2s or 1m30s"},
	} {
		got, err := Duration(c.text, c.least)
		if got != c.want || words(err) != c.err {
			t.Errorf("%q: %v, %q; want %v, %q", c.text, got, words(err), c.want, c.err)
		}
	}
}

func words(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestWhole(t *testing.T) {
	for _, c := range []struct {
		text string
		in   Bounds
		want int64
		err  string
	}{
		{"1", Bounds{1, 10}, 1, ""},
		{"10", Bounds{1, 10}, 10, ""},
		{"0", Bounds{1, 10}, 0, "from 1 to 10"},
		{"11", Bounds{1, 10}, 0, "from 1 to 10"},
		{"many", Bounds{1, 10}, 0, "want a whole number"},
		{"", Bounds{1, 10}, 0, "want a whole number"},
		{"99999999999999999999", Bounds{1, 10}, 0, "from 1 to 10"},
		{"-99999999999999999999", Bounds{1, 10}, 0, "from 1 to 10"},
	} {
		if got, err := Whole(c.text, c.in); got != c.want || words(err) != c.err {
			t.Errorf("%q: %d, %q; want %d, %q", c.text, got, words(err), c.want, c.err)
		}
	}
}

func TestSeed(t *testing.T) {
	if got, err := Seed("18446744073709551615"); got != math.MaxUint64 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	for _, text := range []string{"", "-1", "x", "18446744073709551616"} {
		if _, err := Seed(text); words(err) != "want a whole number from 0 to 18446744073709551615" {
			t.Errorf("%q: %q", text, words(err))
		}
	}
}
