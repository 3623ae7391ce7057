package installation

import (
	"log/slog"

	"posttrade/app/settings"
	"posttrade/blotter/feed"
	"posttrade/httpapi"
)

// newFeed makes the live feed. It does nothing before its first reader.
//
// A single node and a member have one each, for the readers of GET /feed of this process. It must
// be closed before the engine ends.
func (in *Installation) newFeed(c *settings.Config, log *slog.Logger) *feed.Hub {
	in.feed = in.Core.NewFeed(httpapi.RenderFeed, c.Int("feed.max-clients"), func(err error) {
		log.Error("the live feed has failed; the next reader starts it again", "error", err)
	})
	return in.feed
}

// closeFeed ends the live feed: its shadow reads the journal.
func (in *Installation) closeFeed() {
	if in.feed != nil {
		in.feed.Close()
	}
}
