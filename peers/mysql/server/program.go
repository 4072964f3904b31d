package server

import (
	"database/sql"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"

	"github.com/go-sql-driver/mysql"

	"lockstep/peers/external"
)

// The real program, the program that makes its first data, and their Debian package.
const (
	program    = "mariadbd"
	installer  = "mariadb-install-db"
	programPkg = "mariadb-server"
)

// install makes the first data of the real program in a folder.
func install(dir string, log io.Writer, start func(*exec.Cmd) error) error {
	cmd := exec.Command(installer, "--no-defaults", "--user=root", "--datadir="+filepath.Join(dir, "data"), "--auth-root-authentication-method=normal", "--skip-test-db",
		"--innodb-log-file-size=4M")
	cmd.Stdout, cmd.Stderr = log, log
	err := start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", installer, err)
	}
	return nil
}

// launch starts the real program on the data of a folder. It returns when the program serves the
// table of locks on a socket of its own, and at the address addr, unless that is empty.
func launch(dir, addr string, log io.Writer, start func(*exec.Cmd) error) (*external.Process, *sql.DB, error) {
	socket := filepath.Join(dir, "s")
	args := []string{"--no-defaults", "--user=root", "--datadir=" + filepath.Join(dir, "data"), "--socket=" + socket, "--pid-file=" + filepath.Join(dir, "pid"), "--innodb-log-file-size=4M"}
	if addr == "" {
		args = append(args, "--skip-networking")
	} else {
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, nil, err
		}
		args = append(args, "--bind-address=127.0.0.1", "--port="+port, "--skip-name-resolve")
	}
	admin, err := open("unix", socket, "")
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = admin.Close() }()
	p, err := external.Launch(exec.Command(program, args...), log, start, func() bool {
		_, err := admin.Exec("CREATE DATABASE IF NOT EXISTS " + Database)
		return err == nil
	})
	if err != nil {
		return nil, nil, err
	}
	network, at := "unix", socket
	if addr != "" {
		network, at = "tcp", addr
	}
	db, err := open(network, at, Database)
	if err == nil {
		_, err = db.Exec("CREATE TABLE IF NOT EXISTS" + Table[len("CREATE TABLE"):])
	}
	if err != nil {
		p.Kill()
		return nil, nil, err
	}
	return p, db, nil
}

// open makes a pool of connections to the real program.
func open(network, addr, database string) (*sql.DB, error) {
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName, c.InterpolateParams, c.Logger = "root", network, addr, database, true, &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}
