package cli

import (
	"fmt"

	"lockstep/cli/frame"
)

// campaignFolder is folder for a command that writes the verdicts of a campaign. It replaces no others.
func campaignFolder(a *frame.App, dir string) (release func(), err error) {
	release, err = a.Folder(dir)
	if err != nil || dir == "" {
		return release, err
	}
	if err := onlyCampaigns(dir); err != nil {
		release()
		return nil, fmt.Errorf("--out: %w", err)
	}
	return release, nil
}

// FarmFolder is folder for the folder of a farm. It replaces no page of another.
func FarmFolder(a *frame.App, dir string) (release func(), err error) {
	release, err = a.FolderOf("--dir", dir)
	if err != nil {
		return nil, err
	}
	if err := onlyFarms(dir); err != nil {
		release()
		return nil, fmt.Errorf("--dir: %w", err)
	}
	return release, nil
}
