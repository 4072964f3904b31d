package server

import "testing"

// A request is shown with its path, in which a unique part is cut. The record has the whole path.
func TestARequestIsShownWithItsPath(t *testing.T) {
	frame := func(op int32, path string) string {
		var w writer
		w.int32(1)
		w.int32(op)
		if path != "" {
			w.text(path)
		}
		return string(w.frame())
	}
	for _, c := range []struct {
		op         int32
		path, want string
	}{
		{opCreate, "/orders", "CREATE /orders"},
		{opCreate, "/orders/_c_d71eeff61ff24d4063648d2f0a6b032a-lock-", "CREATE /orders/_c_d71eef…-lock-"},
		{opDelete, "/orders/lock-0000000000", "DELETE /orders/lock-0000000000"},
		{opPing, "", ""},
	} {
		r, rest, err := New().Decode(frame(c.op, c.path))
		if err != nil || rest != "" || r.Says != c.want || c.path != "" && r.Shown[0] != c.path || !r.Abridged {
			t.Errorf("%q: %q, %q, %v; want %q", c.path, r.Says, r.Shown, err, c.want)
		}
	}
}
