package server

import (
	"math"
	"strconv"
	"strings"

	"lockstep/sim"
)

// The limits of the protocol.
const (
	maxKey = 250
	// maxLine is the length of an unfinished line at which the server closes the connection, unless
	// the line asks for many keys.
	maxLine = 2048
	// maxItem is the maximal size of an item with everything that the server keeps besides its
	// value: itemHead bytes, the key and a NUL, flags if there are any, and the line end.
	maxItem   = 1 << 20
	itemHead  = 56
	flagsSize = 4
)

// Refusal is sim.Parts.Refusal.
func (*Server) Refusal(text string) []byte { return []byte("SERVER_ERROR " + text + lineEnd) }

// Decode implements sim.Server. The words of a request are its line and, if it has one, its data
// block. A line that is not a command is a request, too, which the server answers with an error.
func (*Server) Decode(text string) (r sim.Request, rest string, err error) {
	line, rest, ok := strings.Cut(text, "\n")
	if !ok {
		trimmed := strings.TrimLeft(text, " ")
		if len(text) <= maxLine || len(text)-len(trimmed) <= 100 && (strings.HasPrefix(trimmed, "get ") || strings.HasPrefix(trimmed, "gets ")) {
			return sim.Request{}, text, sim.ErrUnfinished
		}
		return sim.Request{Name: endless, Marks: true}, "", nil
	}
	if len(line) > 1 {
		line = strings.TrimSuffix(line, "\r")
	}
	line, _, _ = strings.Cut(line, "\x00")
	r.Words = []string{line}
	words := split(line)
	if len(words) > 0 {
		r.Name, r.Shown = strings.ToUpper(words[0]), words[1:]
	}
	r.Marks = r.Name == "QUIT"
	if h, errText := readHead(words); errText == "" {
		size := h.size + len(lineEnd)
		if len(rest) < size {
			return sim.Request{}, text, sim.ErrUnfinished
		}
		data, ended := strings.CutSuffix(rest[:size], lineEnd)
		if !ended {
			data = rest[:size] // its length shows that the end is missing
		}
		rest = rest[size:]
		r.Words, r.Shown = append(r.Words, data), append(r.Shown, data)
	}
	return r, rest, nil
}

// split returns the words of a line.
func split(line string) []string {
	return strings.FieldsFunc(line, func(c rune) bool { return c == ' ' })
}

// endless is the name of a request that is an unfinished line.
const endless = "LINE"

// head is the line before a data block.
type head struct {
	key     string
	flags   uint32
	exptime int32
	size    int    // of the data
	cas     uint64 // of the command cas
}

// readHead reads the line of a command with a data block. The text is the error that the
// server answers if the line is wrong; then no data block follows.
func readHead(words []string) (h head, errText string) {
	count := 5
	if len(words) > 0 && words[0] == "cas" {
		count = 6
	}
	if len(words) == 0 || !hasData[words[0]] || len(words) != count && len(words) != count+1 {
		return h, errUnknown
	}
	flags, flagsOK := parseUint(words[2])
	exptime, exptimeOK := parseInt(words[3])
	size, sizeOK := parseInt(words[4])
	casOK := true
	if count == 6 {
		h.cas, casOK = parseUint(words[5])
	}
	h.key, h.flags, h.exptime, h.size = words[1], uint32(flags), int32(exptime), int(int32(size))
	if len(h.key) > maxKey || !flagsOK || !exptimeOK || !sizeOK || !casOK || h.size < 0 || h.size > math.MaxInt32-2 {
		return h, errFormat
	}
	return h, ""
}

// hasData are the commands with a data block.
var hasData = map[string]bool{"set": true, "add": true, "replace": true, "append": true, "prepend": true, "cas": true}

// The functions below read numbers as strtoull and strtoll of C do.

// parseUint reads a number that ends at white space or with the text. If it is 2^63 or
// more, no minus sign may be anywhere in the text.
func parseUint(text string) (n uint64, ok bool) {
	negative, digits := number(text)
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0, false
	}
	if negative {
		n = -n
	}
	if text, _, _ := strings.Cut(text, "\x00"); n > math.MaxInt64 && strings.Contains(text, "-") {
		return 0, false
	}
	return n, true
}

// parseInt reads a number with a sign that ends at white space or with the text.
func parseInt(text string) (n int64, ok bool) {
	negative, digits := number(text)
	if negative {
		digits = "-" + digits
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil
}

// number splits a text into a sign and digits. The digits are empty if the text has none, or if
// something other than white space follows them.
func number(text string) (negative bool, digits string) {
	text = strings.TrimLeft(text, space)
	negative = strings.HasPrefix(text, "-")
	if negative || strings.HasPrefix(text, "+") {
		text = text[1:]
	}
	digits, behind := text, ""
	if i := strings.IndexFunc(text, func(c rune) bool { return c < '0' || c > '9' }); i >= 0 {
		digits, behind = text[:i], text[i:]
	}
	if behind != "" && !strings.ContainsRune(space+"\x00", rune(behind[0])) {
		return negative, ""
	}
	return negative, digits
}

const space = " \t\n\v\f\r"
