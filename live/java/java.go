//go:build linux

package java

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"lockstep/interop/library"
	"lockstep/live"
	"lockstep/lockimpl"
	"lockstep/lockimpl/redisson"
	"lockstep/model"
	"lockstep/scenarios/subject"
	_ "lockstep/scenarios/subject/builtin" // the ports
	"lockstep/scenarios/subject/onredis"
	"lockstep/sim"
)

// families are the kinds of locks that the library runs, by the name of the port's family.
var families = []struct{ port, name, kind string }{
	{"redisson", "redisson-java", "plain"},
	{"redisson-fair", "redisson-java-fair", "fair"},
}

func init() {
	for _, f := range families {
		for _, rel := range redisson.Releases {
			port, err := subject.Find(f.port + "@" + rel.Version)
			if err != nil {
				panic("java: " + err.Error())
			}
			live.RegisterForeign(lockOf(port, rel, f.name+"@"+rel.Version, f.kind))
		}
	}
}

// lockOf returns the lock of the library that a port is of.
func lockOf(port *subject.Subject, rel *redisson.Release, name, kind string) *live.Foreign {
	l := *port
	l.Name, l.Port, l.Unlisted = name, port, true
	l.About = "the Java library itself, which " + port.Name + " is a port of"
	l.Open = func(*sim.Process, subject.Options) (lockimpl.Client, error) {
		return nil, fmt.Errorf("%s runs on real servers only", name)
	}
	protocol := *port.Servers.(*onredis.Protocol)
	protocol.Scripts, protocol.Role = nil, roleOf
	l.Servers = &protocol
	f := &live.Foreign{
		Lock:  &l,
		Needs: []live.Needed{{Program: "java", Package: "default-jdk-headless"}, {Program: "mvn", Package: "maven"}},
		Build: func() (string, error) { return build(l.Release) },
		Start: func(o live.ForeignOptions) (live.ForeignClient, error) { return start(l.Release, kind, o) },
	}
	f.NoFairWait = !fairWaitIsASetting(rel.Version)
	if rel.Watchdog == redisson.WatchdogTimer {
		f.Watchdog = redisson.DefaultWatchdog // in that release it is a constant
	}
	return f
}

// fairWaitIsASetting reports whether a release has the setting fairLockWaitTimeout, which came with
// 3.46.0 (redisson pull request 6515).
func fairWaitIsASetting(version string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		panic("java: " + version + " is not a version")
	}
	return major > 3 || major == 3 && minor >= 46
}

// build compiles the driver with a release and returns the class path.
func build(release string) (string, error) {
	classpath, err := library.Classpath(release)
	if err != nil {
		return "", fmt.Errorf("the library of release %s cannot be built: %w", release, err)
	}
	return classpath, nil
}

// calls matches each call of a command in a script.
var calls = regexp.MustCompile(`redis\.call\(\s*['"](\w+)`)

// roleOf returns the role of a script of the library by the commands that it may call. Only
// attempts and unlocks change the count of levels. Only unlocks and forced unlocks delete the lock.
// The script that leaves the queue touches nothing but the queue.
func roleOf(text string) model.Role {
	var commands []string
	for _, m := range calls.FindAllStringSubmatch(text, -1) {
		commands = append(commands, strings.ToLower(m[1]))
	}
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(commands, n) })
	}
	switch counts, deletes := has("hincrby", "hset"), has("del"); {
	case counts && deletes:
		return model.RoleUnlock
	case counts:
		return model.RoleAcquire
	case deletes:
		return model.RoleForceUnlock
	case has("lrem"):
		return model.RoleLeave
	case has("pexpire"):
		return model.RoleRenew
	}
	return ""
}
