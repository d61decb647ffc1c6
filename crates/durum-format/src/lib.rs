//! What durum keeps on the media: layouts, validation and replay as functions over bytes.
