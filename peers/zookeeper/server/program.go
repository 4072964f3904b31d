package server

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"lockstep/peers/external"
)

// jar is the real program at its place in Debian.
const jar = "/usr/share/java/zookeeper.jar"

// launch starts the real program at an address, as a single server, with its data and configuration
// in dir, ticks of tickMs, and further options of Java. It returns when the program serves.
func launch(java, dir, addr string, tickMs int, log io.Writer, start func(*exec.Cmd) error, options ...string) (*external.Process, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "zoo.cfg")
	text := fmt.Sprintf("tickTime=%d\ndataDir=%s/data\nclientPortAddress=127.0.0.1\nclientPort=%s\nmaxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=srvr,dump\n", tickMs, dir, port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	args := append([]string{"-Xshare:auto", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m"}, options...)
	cmd := exec.Command(java, append(args, "-cp", jar, "org.apache.zookeeper.server.ZooKeeperServerMain", config)...)
	return external.Launch(cmd, log, start, func() bool {
		answer, err := ask(addr, "srvr", 5*time.Second)
		return err == nil && strings.Contains(answer, "Mode: standalone")
	})
}

// ask sends a four-letter command on a connection of its own, and returns the answer.
func ask(addr, command string, most time.Duration) (string, error) {
	c, err := net.DialTimeout("tcp", addr, most)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(most)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c, command); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(c)
	return string(answer), err
}
