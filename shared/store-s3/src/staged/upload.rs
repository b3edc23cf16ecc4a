use aws_sdk_s3::{
    error::{ProvideErrorMetadata, SdkError},
    operation::complete_multipart_upload::CompleteMultipartUploadOutput,
    types::{ChecksumAlgorithm, CompletedMultipartUpload, CompletedPart},
};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use layout::Key;
use store::{Condition, Operation, StoreError, Version};
use tokio::runtime::Handle;

use super::{PARTS_IN_MEMORY, Source};
use crate::{
    S3Store,
    attempts::Attempts,
    fault::{self, Meaning},
    read::Lacking,
    write::{Unwritten, fields},
};

/// A multipart upload. Unless it was completed, dropping it takes its parts away, for which S3 would charge for ever.
struct Upload {
    store: S3Store,
    key: Key,
    id: String,
    open: bool,
}

impl S3Store {
    /// Sends an object in parts and puts it together under the condition. After a race the parts are lost (Amazon S3
    /// User Guide, "Conditional writes"), so the caller starts again from here.
    pub(crate) async fn upload(&self, key: &Key, source: &Source, condition: &Condition) -> Result<Version, Unwritten> {
        let mut upload = Upload::begin(self, key).await?;
        let sent = upload.send(source).await;
        let done = match sent {
            Ok(parts) => upload.complete(parts, condition).await,
            Err(error) => Err(error.into()),
        };
        if done.is_ok() {
            upload.open = false;
        } else {
            upload.abort().await;
        }
        done
    }
}

impl Upload {
    async fn begin(store: &S3Store, key: &Key) -> Result<Self, StoreError> {
        let request = store.client().create_multipart_upload().bucket(&store.place().bucket);
        let request = request.key(store.place().name(&key.to_string()));
        let request = request.content_type(key.content_type());
        let request = request.set_content_encoding(key.content_encoding().map(Into::into));
        let request = request.cache_control(key.cache_policy().cache_control());
        let begun = request.checksum_algorithm(ChecksumAlgorithm::Crc32).send().await;
        let begun = begun.map_err(|error| fault::failed(Operation::Put, key, error))?;
        let id = begun.upload_id;
        Ok(Self {
            store: store.clone(),
            key: key.clone(),
            id: id.ok_or_else(|| StoreError::failed(Operation::Put, key, Lacking("upload id")))?,
            open: true,
        })
    }

    async fn send(&self, source: &Source) -> Result<Vec<CompletedPart>, StoreError> {
        let parts = source
            .parts()
            .zip(1..)
            .map(|(range, number)| self.part(source, range, number));
        // Boxed, or the compiler does not see that what the parts borrow lives long enough.
        let parts: Vec<_> = parts.map(Box::pin).collect();
        stream::iter(parts).buffered(PARTS_IN_MEMORY).try_collect().await
    }

    async fn part(
        &self,
        source: &Source,
        range: std::ops::Range<u64>,
        number: i32,
    ) -> Result<CompletedPart, StoreError> {
        let _memory = self.store.memory().acquire().await.expect("nobody closes it");
        let bytes = source.read(range).await;
        let bytes = bytes.map_err(|error| StoreError::failed(Operation::Put, &self.key, error))?;
        let request = self.store.client().upload_part().bucket(&self.store.place().bucket);
        let request = request.key(self.name()).upload_id(&self.id).part_number(number);
        let request = request.checksum_algorithm(ChecksumAlgorithm::Crc32);
        let sent = request.body(bytes.into()).send().await;
        let sent = sent.map_err(|error| fault::failed(Operation::Put, &self.key, error))?;
        let part = CompletedPart::builder().part_number(number);
        let part = part.set_e_tag(sent.e_tag).set_checksum_crc32(sent.checksum_crc32);
        Ok(part.build())
    }

    async fn complete(&self, parts: Vec<CompletedPart>, condition: &Condition) -> Result<Version, Unwritten> {
        let attempts = Attempts::default();
        let (none_match, matches) = fields(condition);
        let parts = CompletedMultipartUpload::builder().set_parts(Some(parts)).build();
        let request = self.store.client().complete_multipart_upload();
        let request = request
            .bucket(&self.store.place().bucket)
            .key(self.name())
            .upload_id(&self.id);
        let request = request.multipart_upload(parts);
        let request = request.set_if_none_match(none_match).set_if_match(matches);
        match request.customize().interceptor(attempts.clone()).send().await {
            Ok(CompleteMultipartUploadOutput { e_tag: Some(tag), .. }) => Ok(Version(tag)),
            Ok(_) => Err(StoreError::failed(Operation::Put, &self.key, Lacking("ETag")).into()),
            Err(error) if attempts.repeated() && is_gone(&error) => Err(Unwritten::Refused { repeated: true }),
            Err(error) => Err(Unwritten::new(&self.key, condition, &attempts, error)),
        }
    }

    /// Best effort: what stays is for the bucket's lifecycle rule for unfinished uploads.
    async fn abort(mut self) {
        self.open = false;
        if let Err(error) = self.aborting().await {
            tracing::debug!(key = %self.key, error = &error as &dyn std::error::Error, "cannot abort an upload");
        }
    }

    fn aborting(&self) -> impl Future<Output = Result<(), StoreError>> + use<> {
        let request = self
            .store
            .client()
            .abort_multipart_upload()
            .bucket(&self.store.place().bucket);
        let request = request.key(self.name()).upload_id(&self.id);
        let key = self.key.clone();
        async move {
            let aborted = request.send().await;
            aborted
                .map(drop)
                .map_err(|error| fault::failed(Operation::Put, &key, error))
        }
    }

    fn name(&self) -> String {
        self.store.place().name(&self.key.to_string())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let (true, Ok(runtime)) = (self.open, Handle::try_current()) {
            runtime.spawn(self.aborting());
        }
    }
}

/// An earlier attempt that succeeded leaves no upload for the next.
fn is_gone<E: ProvideErrorMetadata>(error: &SdkError<E>) -> bool {
    fault::meaning(error) == Meaning::Missing
}
