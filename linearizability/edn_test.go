package linearizability

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"strings"
	"testing"

	"lockstep/model"
)

// mutex is a history as Jepsen writes it, with a fault beside it.
const mutex = `{:type :invoke, :f :acquire, :process 0, :time 100, :value nil}
{:index 1, :type :ok, :f :acquire, :process 0, :time 200, :value nil, :error "none"}
{:type :info, :f :start-partition, :process :nemesis, :time 250, :value "isolated n1"}
{:type :invoke, :f :release, :process 0, :time 300, :value nil}
{:type :invoke, :f :acquire, :process 1, :time 310, :value nil}
{:type :ok, :f :acquire, :process 1, :time 350, :value nil}
{:type :ok, :f :release, :process 0, :time 400, :value nil}
`

// shownOps writes operations in a few words.
func shownOps(ops []Op) string {
	var b strings.Builder
	for _, op := range ops {
		ret := "?"
		if op.ReturnNs != nil {
			ret = fmt.Sprint(*op.ReturnNs)
		}
		token := ""
		if op.Token != nil {
			token = fmt.Sprintf(" token %d", *op.Token)
		}
		fmt.Fprintf(&b, "%d: %s %s %s %d..%s %s%s\n", op.Line, op.owner(), op.Op, op.Lock, op.CallNs, ret, op.Outcome, token)
	}
	return strings.TrimSpace(b.String())
}

func TestReadJepsen(t *testing.T) {
	for _, c := range []struct{ rule, text, want string }{
		{"pairs of entries are operations, and the nemesis has none", mutex,
			"1: 0/1 acquire lock 100..200 granted\n4: 0/1 release lock 300..400 released\n5: 1/1 acquire lock 310..350 granted"},
		{"what failed did nothing, and what nobody knows may still happen", `
{:process 0 :type :invoke :f :acquire :time 1}
{:process 0 :type :fail :f :acquire :time 2}
{:process 0 :type :invoke :f :acquire :time 3}
{:process 0 :type :info :f :acquire :time 4}
{:process 1 :type :invoke :f :release :time 5}`,
			"2: 0/1 acquire lock 1..2 failed\n4: 0/1 acquire lock 3..? unknown\n6: 1/1 release lock 5..? unknown"},
		{"a lock that was entered twice is still held after one release", `
{:process 0 :type :invoke :f :acquire :time 1}
{:process 0 :type :ok :f :acquire :time 2}
{:process 0 :type :invoke :f :acquire :time 3}
{:process 0 :type :ok :f :acquire :time 4}
{:process 0 :type :invoke :f :release :time 5}
{:process 0 :type :ok :f :release :time 6}
{:process 0 :type :invoke :f :release :time 7}
{:process 0 :type :ok :f :release :time 8}`,
			"2: 0/1 acquire lock 1..2 granted\n4: 0/1 acquire lock 3..4 granted\n6: 0/1 release lock 5..6 still_held\n8: 0/1 release lock 7..8 released"},
		{"a value names the lock, and may hold a token", `
{:process 0 :type :invoke :f :acquire :index 0 :value [:orders nil]}
{:process 0 :type :ok :f :acquire :index 1 :value [:orders {:fence 7, :client "c"}]}
{:process 1 :type :invoke :f :acquire :index 2 :value "stock"}
{:process 1 :type :ok :f :acquire :index 3 :value "stock"}`,
			"2: 0/1 acquire orders 0..1 granted token 7\n4: 1/1 acquire stock 2..3 granted"},
		{"one vector of records, without instants", "[#jepsen.history.Op{:process 0 :type :invoke :f :acquire}\n#jepsen.history.Op{:process 0 :type :ok :f :acquire}]\n",
			"1: 0/1 acquire lock 1..2 granted"},
	} {
		h, err := ReadHistory(strings.NewReader(c.text), "h.edn")
		if err != nil {
			t.Errorf("%s: %v", c.rule, err)
			continue
		}
		if got := shownOps(h.Ops); got != c.want {
			t.Errorf("%s: read\n%s\nand should have read\n%s", c.rule, got, c.want)
		}
	}
	h, err := ReadHistory(strings.NewReader(mutex), "h.edn")
	if want := (Note{Of: "nemesis", AtNs: 250, Text: `start-partition "isolated n1"`}); err != nil || len(h.Notes) != 1 || h.Notes[0] != want {
		t.Errorf("notes: %+v, %v", h.Notes, err)
	}
}

func TestReadJepsenRefuses(t *testing.T) {
	const call = "{:process 0 :type :invoke :f :acquire :time 5}\n"
	for _, c := range []struct{ rule, text, want string }{
		{"a release of nothing", "{:process 0 :type :ok :f :release :time 1}", "h.edn:1:1: process 0 returns from :release and has not called"},
		{"two open calls", call + call, "h.edn:2:1: process 0 calls while its call of line 1 is open"},
		{"a return from another call", call + "{:process 0 :type :ok :f :release :time 6}", "h.edn:2:1: process 0 returns from :release, and its call of line 1 was :acquire"},
		{"a time that goes back", call + "{:process 0 :type :ok :f :acquire :time 4}", "h.edn:2:1: :time 4 is before the 5 of line 1"},
		{"a time that is missing", call + "{:process 0 :type :ok :f :acquire}", "h.edn:2:1: :time is missing"},
		{"an index for a time", call + "{:process 0 :type :ok :f :acquire :index 9}", "h.edn:2:1: :index tells when this was"},
		{"a call of a process that is gone", call + "{:process 0 :type :info :f :acquire :time 6}\n{:process 0 :type :invoke :f :release :time 7}",
			"h.edn:3:1: process 0 calls although nobody knows what became of its call of line 1"},
		{"a last line cut off", call + "{:process 0 :type :ok :f", "h.edn:2:1: "},
		{"no map", "[:a :b]", "h.edn:1:1: :a :b] is no entry"},
		{"something after the map", "{:process 0 :type :invoke :f :acquire :time 5} 7", "h.edn:1:1: there is something after the map"},
		{"another function", "{:process 0 :type :invoke :f :read :time 5}", "h.edn:1:1: :f :read is none of a lock"},
		{"another type", "{:process 0 :type :call :f :acquire :time 5}", "h.edn:1:1: :type :call is unknown"},
		{"a process that is no number", "{:process \"a\" :type :invoke :f :acquire :time 5}", "h.edn:1:1: :process a is none"},
		{"a value of three parts", "{:process 0 :type :invoke :f :acquire :time 5 :value [1 2 3]}", "h.edn:1:1: :value has 3 parts"},
		{"a time that is no number", "{:process 0 :type :invoke :f :acquire :time \"now\"}", "h.edn:1:1: string is no :time, :index or :process; these are whole numbers"},
		{"a time that is too large", "{:process 0 :type :invoke :f :acquire :time 99999999999999999999}", "h.edn:1:1: int 99999999999999999999 is no :time"},
		{"a token that is too large", "{:process 0 :type :invoke :f :acquire :time 5 :value [:x {:token 99999999999999999999}]}", "h.edn:1:1: 99999999999999999999 is too large or too small"},
		{"a function that is no keyword", "{:process 0 :type :invoke :f 7 :time 5}", "h.edn:1:1: int is no :type and no :f; these are keywords"},
		{"no EDN", "{:process 0 :type :invoke :f :acquire :time 5 :value \"\\uZZZZ\"}", "h.edn:1:1: not EDN: "},
	} {
		h, err := ReadHistory(strings.NewReader(c.text), "h.edn")
		var format *FormatError
		if !errors.As(err, &format) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v; wanted %s", c.rule, h, err, c.want)
		}
	}
}

// A history without a call is refused in every format. A judge would find every promise kept.
func TestReadHistoryRefusesAHistoryWithoutACall(t *testing.T) {
	var packed bytes.Buffer
	if err := gzip.NewWriter(&packed).Close(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"nothing":                              "",
		"blank lines":                          "\n\n",
		"an empty file, packed":                packed.String(),
		"an empty vector":                      "[]\n",
		"a comment":                            "; nothing\n",
		"only a fault":                         "{:type :info, :f :start-partition, :process :nemesis, :time 5}\n",
		"only a death":                         `{"process":"a","op":"crash","call_ns":1}` + "\n",
		"only a death and a key that was lost": `{"process":"a","op":"crash","call_ns":1}` + "\n" + `{"lock":"l","op":"lost","call_ns":1,"return_ns":2}` + "\n",
	} {
		h, err := ReadHistory(strings.NewReader(text), "h")
		var format *FormatError
		if h != nil || !errors.As(err, &format) || !strings.HasPrefix(err.Error(), "h:1:1: the history has no call of a thread") {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
	}
	if _, err := ReadHistory(strings.NewReader(`{"process":"a","thread":1,"lock":"l","op":"is_locked","call_ns":0,"return_ns":1,"outcome":"false"}`), "h"); err != nil {
		t.Errorf("one call: %v", err)
	}
}

// A history may be packed or not, in either format.
func TestReadHistoryPacked(t *testing.T) {
	for name, text := range map[string]string{
		"edn":  mutex,
		"json": `{"process":"a","thread":1,"lock":"l","op":"acquire","call_ns":0,"return_ns":1,"outcome":"granted"}` + "\n",
	} {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write([]byte(text))
		_ = z.Close()
		packed, err := ReadHistory(&b, name)
		if err != nil {
			t.Fatal(name, err)
		}
		plain, err := ReadHistory(strings.NewReader(text), name)
		if err != nil || shownOps(packed.Ops) != shownOps(plain.Ops) || len(plain.Ops) == 0 {
			t.Errorf("%s: %v\n%s\n%s", name, err, shownOps(packed.Ops), shownOps(plain.Ops))
		}
	}
	if _, err := ReadHistory(strings.NewReader("\x1f\x8bx"), "h.gz"); err == nil || !strings.Contains(err.Error(), "h.gz") {
		t.Errorf("a packed file cut off: %v", err)
	}
}

// A history of Jepsen is judged and drawn.
func TestCheckJepsen(t *testing.T) {
	h, err := ReadHistory(strings.NewReader(mutex), "h.edn")
	if err != nil {
		t.Fatal(err)
	}
	if v := Check(h.Ops, Options{}).Verdict(); v != OK {
		t.Errorf("held by one after the other: %s", v)
	}
	broken, err := ReadHistory(strings.NewReader(strings.Replace(mutex, ":process 0, :time 300", ":process 0, :time 300, :late true", 1)+
		"{:type :invoke, :f :acquire, :process 2, :time 500}\n{:type :ok, :f :acquire, :process 2, :time 600}\n"), "h.edn")
	if err != nil {
		t.Fatal(err)
	}
	res := Check(broken.Ops, Options{})
	l := res.Locks[0]
	if l.Verdict != Broken || l.First == nil || l.First.Line != 8 || l.Prefix != 3 || !strings.Contains(fmt.Sprintf("%+v", l.Overlap), "Holder:1/1") {
		t.Fatalf("held by two: %+v, first %+v", l, l.First)
	}
	var page bytes.Buffer
	if err := PictureOf(l, broken.Notes, &page); err != nil || !strings.Contains(page.String(), "start-partition") || !strings.Contains(page.String(), "<html") {
		t.Errorf("picture: %v, %d bytes", err, page.Len())
	}
}

// FuzzReadHistory checks that every input, in either format, is read and judged, or refused with a
// line.
func FuzzReadHistory(f *testing.F) {
	f.Add([]byte(mutex))
	f.Add([]byte("[" + strings.TrimSpace(mutex) + "]"))
	f.Add([]byte("{:process 0 :type :invoke :f :acquire :time 5 :value [:x {:token 1}]}"))
	f.Add([]byte("{"))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := ReadHistory(bytes.NewReader(text), "fuzzed")
		if err != nil {
			return
		}
		if len(h.Ops) <= 30 {
			Check(h.Ops, Options{Spec: model.Specs[0], StepLimit: 10_000})
		}
	})
}
