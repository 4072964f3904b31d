//go:build interop && linux

package java

import (
	"bufio"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockstep/internal/realtime"
	"lockstep/live"
	"lockstep/lockimpl"
	"lockstep/lockimpl/redisserver"
	"lockstep/model"
	"lockstep/scenarios/subject"
)

// A client has sent each script of its lock before its scenario begins, so that no script is unknown to
// the server at a step.
func TestAWarmClientSendsNoScriptForTheFirstTime(t *testing.T) {
	needPrograms(t)
	for _, x := range []struct{ release, kind string }{{"4.7.0", "plain"}, {"4.7.0", "fair"}, {"3.43.0", "fair"}, {"3.12.4", "fair"}, {"3.4.2", "plain"}} {
		t.Run(x.release+" "+x.kind, func(t *testing.T) {
			built, err := build(x.release)
			if err != nil {
				t.Fatal(err)
			}
			realtime.Case(t, x.release+" "+x.kind, func(int) string {
				server := redisserver.Start(t, "redis-server")
				seen := watch(t, server.Addr)
				const watchdog = 3 * time.Second
				c, err := start(x.release, x.kind, live.ForeignOptions{
					Options: subject.Options{Addrs: []string{server.Addr}, Watchdog: watchdog},
					Built:   built, Threads: 2, Locks: []string{"orders"}, Spawn: live.Spawn, Gap: func(int64, int64) {},
					Reply: func(lockimpl.Owner, model.Role) (string, bool) { return "", false },
				})
				if err != nil {
					return err.Error()
				}
				defer c.(*client).jvm.Stop()
				warm, roles := seen()
				renews := x.release != "3.4.2" // its watchdog timeout is always 30 s, too long for a test
				want := []model.Role{model.RoleAcquire, model.RoleForceUnlock, model.RoleUnlock}
				if renews {
					want = append(want, model.RoleRenew)
				}
				if x.kind == "fair" {
					want = append(want, model.RoleLeave)
				}
				for _, role := range want {
					if !slices.Contains(roles, role) {
						t.Errorf("no script with the role %s was sent, only %v", role, roles)
					}
				}
				if err := useAll(t, c, renews); err != nil {
					return err.Error()
				}
				used, _ := seen()
				if len(used) < len(want) {
					return fmt.Sprintf("%d scripts were used, and the roles are %v", len(used), want)
				}
				for _, sha := range used {
					if !slices.Contains(warm, sha) {
						t.Errorf("script %s is sent for the first time when the client is warm", sha)
					}
				}
				return ""
			})
		})
	}
}

// useAll makes the lock send each of its scripts.
func useAll(t *testing.T, c live.ForeignClient, renews bool) error {
	ctx := t.Context()
	l, err := c.GetLock("orders")
	if err != nil {
		return err
	}
	if err := l.Lock(ctx, 1, lockimpl.LockOptions{Lease: time.Minute}); err != nil {
		return err
	}
	if ok, err := l.TryLock(ctx, 2); ok || err != nil {
		return fmt.Errorf("a try for a lock that is held: %v, %w", ok, err)
	}
	if ok, err := l.TryLockTimed(ctx, 2, lockimpl.TryOptions{Wait: 50 * time.Millisecond, Lease: time.Minute}); ok || err != nil {
		return fmt.Errorf("a timed try for a lock that is held: %v, %w", ok, err)
	}
	if _, err := l.Unlock(ctx, 1); err != nil {
		return err
	}
	if renews {
		if err := l.Lock(ctx, 1, lockimpl.LockOptions{}); err != nil {
			return err
		}
		for left := time.Duration(0); ; {
			before := left
			if left, err = l.RemainTimeToLive(ctx); err != nil || left < 0 {
				return fmt.Errorf("the hold has %v to live, and is not renewed: %w", left, err)
			}
			if before > 0 && left > before {
				break
			}
			time.Sleep(10 * time.Millisecond) // the watchdog takes real time
		}
	}
	_, err = l.ForceUnlock(ctx)
	return err
}

// watch returns a function that reports the scripts that were sent to a server since its last call:
// the SHA1 of each, and the role of each that was sent as a text.
func watch(t *testing.T, addr string) (seen func() (shas []string, roles []model.Role)) {
	t.Helper()
	dial := func() (net.Conn, *bufio.Reader) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c, bufio.NewReaderSize(c, 1<<20)
	}
	ask := func(c net.Conn, in *bufio.Reader, line string) {
		if _, err := fmt.Fprint(c, line+"\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	monitor, lines := dial()
	ask(monitor, lines, "MONITOR")
	other, in := dial()
	marks := 0
	return func() (shas []string, roles []model.Role) {
		t.Helper()
		marks++
		mark := fmt.Sprintf("GET mark-%d", marks)
		ask(other, in, mark)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			words := wordsOf(t, line)
			switch name := strings.ToUpper(words[0]); {
			case strings.Join(words, " ") == mark:
				return shas, roles
			case name == "EVALSHA":
				shas = append(shas, words[1])
			case name == "EVAL", name == "SCRIPT" && strings.EqualFold(words[1], "LOAD"):
				text := words[1]
				if name == "SCRIPT" {
					text = words[2]
				}
				sum := sha1.Sum([]byte(text))
				shas, roles = append(shas, hex.EncodeToString(sum[:])), append(roles, roleOf(text))
			}
		}
	}
}

// wordsOf returns the words of a command in a line of MONITOR.
func wordsOf(t *testing.T, line string) (words []string) {
	t.Helper()
	_, rest, _ := strings.Cut(strings.TrimSpace(line), "] ")
	for rest != "" {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		word, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		words = append(words, word)
		rest = strings.TrimPrefix(rest[len(quoted):], " ")
	}
	return words
}
