package redis

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/lockimpl/redisserver"
)

// comparisons asks for all commands with a condition on a value, and for their errors.
var comparisons = exchange{
	"a: del k h", "a: set k v ifeq x", "a: set k v ifne x", "a: get k", "a: set k v2 ifeq v get", "a: set k v3 ifeq zz get",
	"a: set k v3 ifne v2 get", "a: set k v3 ifne zz get", "a: set k v4 ifeq v3 nx", "a: set k v4 nx ifeq v3", "a: set k v4 ifeq v3 ifeq v3", "a: set k v4 ifeq",
	"a: set k v4 ifeq v3 px 0", "a: set k v4 ifeq nope px 0", "a: set k v4 ifeq v3 keepttl ex 10", "a: lpush h 1", "a: set h v ifeq x", "a: set h v ifne x",
	"a: set h v ifeq x get", "a: digest k", "a: digest nokey", "a: digest h", "a: set k abc", "a: digest k",
	"a: set k d ifdeq b42bc01f65d46eaa", "a: set k d ifdeq zz", "a: set k d ifdeq 123", "a: set k d ifdne 0000000000000000", "a: set nokey d ifdeq 0000000000000000", "a: set nokey d ifdne 0000000000000000",
	"a: delex k ifdeq 0", "a: delex nokey", "a: delex h", "a: delex k", "a: set k v", "a: delex k ifeq",
	"a: delex k ifeq x", "a: delex k ifne v", "a: delex k foo v", "a: delex k ifdeq XYZ", "a: delex k ifdne 0000000000000000", "a: delex h ifeq x",
	"a: delex nokey ifeq x", "a: delex nokey foo x", "a: set k v", "a: delex k ifeq v", "a: delex a b c d", "a: delex",
	"a: set k v", "a: delifeq k", "a: delifeq k x", "a: delifeq h x", "a: delifeq nokey x", "a: delifeq k v",
	"a: delifeq a b c", "a: del h", "a: set k v", "a: rpush h 1", "a: delex h ifeq x", "a: delex h ifdeq 0000000000000000",
	"a: delex h ifdeq 0", "a: delex h foo x", "a: delex k foo x", "a: set k w ifeq v ifne z", "a: set k w ifeq v xx", "a: set k v2 ifne zz xx",
	"a: set k v3 ifeq v2 nx get", "a: set n v3 ifne v2 nx", "a: set k x ifdeq ABCDEF0123456789", "a: digest k", "a: set k x ifdeq 30290FE0C46F29F0", "a: set k v ifeq",
	"a: set k v ifeq a ex", "a: set k v get ifeq a", "a: set k v ex 10 ifeq v2", "a: set k v px 10 ifne v2 ex 10", "a: delex k ifeq", "a: delex k ifeq a b",
	"a: set k ifeq ifeq ifeq", "a: set k ifeq", "a: del k h n",
}

// The answers of Redis 8.6 and of Valkey 8.1 are kept in testdata; -real ADDR,RELEASE keeps those of a server anew.
var real = flag.String("real", "", "keep the answers of the server at ADDR, which is of RELEASE: ADDR,RELEASE")

func TestComparisonsAnswerAsTheirReleasesDo(t *testing.T) {
	if addr, release, ok := strings.Cut(*real, ","); ok {
		text := strings.Join(comparisons.onRedis(t, addr), "")
		if err := os.WriteFile(kept(release), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"8.6", "valkey 8.1"} {
		t.Run(name, func(t *testing.T) {
			release, err := ParseRelease(name)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(kept(name))
			if err != nil {
				t.Fatal(err)
			}
			got, r := comparisons.inTheWorld(t, release)
			if text := strings.Join(got, ""); text != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", text, want)
			}
			equal(t, "not simulated", len(r.Record.Unsimulated()), 0)
		})
	}
}

// kept is the file with the answers of a release.
func kept(release string) string {
	return filepath.Join("testdata", "comparisons-"+strings.ReplaceAll(release, " ", "-")+".txt")
}

// Redis 7.0 has none of the commands.
func TestComparisonsAnswerAsRedisDoes(t *testing.T) {
	sameAsRealRedis(t, redisserver.Start(t, "redis-server"), comparisons)
}
