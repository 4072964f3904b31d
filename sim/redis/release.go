package redis

import (
	"fmt"
	"slices"
	"strings"
)

// Release is the release that a server is of, see ParseRelease. The zero value is no release: such a server knows
// every simulated command of any release, and HELLO names Redis 7.2.
type Release struct {
	name   string // as ParseRelease takes it
	valkey bool
	number []int // major and minor
	patch  string
}

// releases are the releases that a server can be of, with the patch that it reports.
var releases = []Release{
	{"7.0", false, []int{7, 0}, "7.0.15"}, {"7.2", false, []int{7, 2}, "7.2.11"}, {"7.4", false, []int{7, 4}, "7.4.6"},
	{"8.0", false, []int{8, 0}, "8.0.6"}, {"8.2", false, []int{8, 2}, "8.2.3"}, {"8.4", false, []int{8, 4}, "8.4.0"}, {"8.6", false, []int{8, 6}, "8.6.3"},
	{"valkey 7.2", true, []int{7, 2}, "7.2.11"}, {"valkey 8.0", true, []int{8, 0}, "8.0.6"}, {"valkey 8.1", true, []int{8, 1}, "8.1.4"},
	{"valkey 9.0", true, []int{9, 0}, "9.0.0"}, {"valkey 9.1", true, []int{9, 1}, "9.1.2"},
}

// ParseRelease returns the release with a name such as "7.0", "8.4" or "valkey 9.0".
func ParseRelease(name string) (Release, error) {
	i := slices.IndexFunc(releases, func(r Release) bool { return r.name == name })
	if i < 0 {
		names := make([]string, len(releases))
		for i, r := range releases {
			names[i] = fmt.Sprintf("%q", r.name)
		}
		return Release{}, fmt.Errorf("no server of release %q is simulated; name one of %s", name, strings.Join(names, ", "))
	}
	return releases[i], nil
}

// String returns the name that ParseRelease takes; "" for the zero value.
func (r Release) String() string { return r.name }

// has reports whether the release has what came with others.
func (r Release) has(s since) bool {
	switch {
	case r.name == "":
		return s.redis != nil || s.valkey != nil
	case r.valkey:
		return s.valkey != nil && slices.Compare(s.valkey[:min(2, len(s.valkey))], r.number) <= 0
	}
	return s.redis != nil && slices.Compare(s.redis[:min(2, len(s.redis))], r.number) <= 0
}

// tries reports whether a server of the release executes a blocking command anew when one of its keys is ready. Earlier
// ones serve the client from that key.
func (r Release) tries() bool { return r.name == "" || slices.Compare(r.number, []int{7, 2}) >= 0 }

// unbalanced returns the error for an XREAD or an XREADGROUP with more or fewer keys than ids.
func (r Release) unbalanced(cmd string) string {
	name, ids := "'"+strings.ToLower(cmd)+"'", "an ID or '$'"
	switch {
	case !r.tries():
		name = "XREAD"
	case cmd == "XREADGROUP":
		ids = "an ID or '>'"
	case r.name != "" && !r.valkey && slices.Compare(r.number, []int{7, 4}) >= 0:
		ids = "an ID, '+', or '$'"
	}
	return "ERR Unbalanced " + name + " list of streams: for each stream key " + ids + " must be specified."
}

// unknownCommand returns the error for a command that a server does not know.
func (Release) unknownCommand(said string, args []string) string {
	var b strings.Builder
	for _, arg := range args {
		if b.Len() >= 128 {
			break
		}
		b.WriteString("'" + arg[:min(len(arg), 128-b.Len())] + "' ")
	}
	return "ERR unknown command '" + said[:min(len(said), 128)] + "', with args beginning with: " + b.String()
}

// greeting returns the fields with which HELLO names the server and its release.
func (r Release) greeting() (server, version string) {
	switch {
	case r.name == "":
		return "redis", unnamed
	case r.valkey:
		return "valkey", r.patch
	}
	return "redis", r.patch
}

// unnamed is the version that a server of no release reports.
const unnamed = "7.2.0"

// section returns the section Server of INFO; "" for the zero value.
func (r Release) section() string {
	switch {
	case r.name == "":
		return ""
	case r.valkey:
		return "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:" + r.patch + "\r\nredis_mode:standalone\r\n"
	}
	return "# Server\r\nredis_version:" + r.patch + "\r\nredis_mode:standalone\r\n"
}
