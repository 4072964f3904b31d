package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"lockstep/explore"
)

// VersionsFile is the file of a folder of results that says which versions of the program
// wrote the parts that are no campaigns. It maps the names of the parts to the versions.
const VersionsFile = "versions.json"

// ReadVersions reads the versionsFile of a folder.
func ReadVersions(dir string) (map[string]explore.Versions, error) {
	text, err := os.ReadFile(filepath.Join(dir, VersionsFile))
	if err != nil {
		return nil, err
	}
	var all map[string]explore.Versions
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, VersionsFile), err)
	}
	return all, nil
}

// KeepVersions writes into the versionsFile of a folder which versions wrote a part.
func KeepVersions(dir, part string, v explore.Versions) error {
	all, err := ReadVersions(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if all == nil {
		all = map[string]explore.Versions{}
	}
	all[part] = v
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(dir, VersionsFile), append(text, '\n'), 0o644)
}
